//! Any bytes, as a deflate stream: what comes of it is spans that are rebuilt, or an error.

#![no_main]

use _native::deflate::detect::choose;
use _native::deflate::span::rebuild;
use _native::deflate::stream::Splitter;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut splitter = Splitter::new(1024);
    let spans = splitter.feed(data);
    for span in spans.iter().take(4) {
        let side = span.analyse(&choose(&[span]));
        assert_eq!(
            Ok(span.bits()),
            rebuild(span.history(), span.plain(), &side).as_ref()
        );
    }
});
