// Encode standard input to standard output with one of the Go encoders.
//
//	encode std LEVEL              compress/gzip of the standard library
//	encode klauspost LEVEL        klauspost/compress/gzip
//	encode pgzip LEVEL [BLOCK]    klauspost/pgzip, in blocks of BLOCK bytes
//	encode zstd LEVEL             klauspost/compress/zstd, LEVEL on the scale of the zstd program
//
// BLOCK is pgzip's own 1 MiB unless given; umoci asks for 256 KiB.
package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"

	kgzip "github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/klauspost/pgzip"
)

func main() {
	if err := encode(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func encode(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("usage: encode std|klauspost|pgzip|zstd LEVEL [BLOCK]")
	}
	numbers := make([]int, len(args)-1)
	for i, arg := range args[1:] {
		number, err := strconv.Atoi(arg)
		if err != nil {
			return err
		}
		numbers[i] = number
	}
	writer, err := open(args[0], numbers)
	if err != nil {
		return err
	}
	if _, err := io.Copy(writer, os.Stdin); err != nil {
		return err
	}
	return writer.Close()
}

func open(kind string, numbers []int) (io.WriteCloser, error) {
	level := numbers[0]
	switch kind {
	case "std":
		return gzip.NewWriterLevel(os.Stdout, level)
	case "klauspost":
		return kgzip.NewWriterLevel(os.Stdout, level)
	case "pgzip":
		writer, err := pgzip.NewWriterLevel(os.Stdout, level)
		if err == nil && len(numbers) > 1 {
			err = writer.SetConcurrency(numbers[1], 2*runtime.NumCPU())
		}
		return writer, err
	case "zstd":
		return zstd.NewWriter(os.Stdout, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)))
	}
	return nil, fmt.Errorf("no encoder is called %s", kind)
}
