// Encode standard input to standard output with Node's zlib: encode.js LEVEL | version
const zlib = require("node:zlib");

const level = process.argv[2];
if (level === "version") {
  console.log(`node ${process.version}, zlib ${process.versions.zlib}`);
} else {
  process.stdin.pipe(zlib.createGzip({ level: Number(level) })).pipe(process.stdout);
}
