//! Any bytes, as a deflate stream: what comes of it is spans that are rebuilt, or an error. The first
//! byte says which configuration is tried, or that the core is to choose one: that tries them all,
//! and so takes a hundred times as long.

#![no_main]

use _native::deflate::config::Config;
use _native::deflate::detect::choose;
use _native::deflate::span::rebuild;
use _native::deflate::stream::Splitter;
use libfuzzer_sys::fuzz_target;

const CHOSEN_BY_THE_CORE: u8 = 0;

fuzz_target!(|data: &[u8]| {
    let Some((&first, rest)) = data.split_first() else {
        return;
    };
    let (config, stream) = match Config::decode(rest) {
        Ok((config, stream)) if first != CHOSEN_BY_THE_CORE => (config, stream),
        _ => (Config::universal(), rest),
    };
    let mut splitter = Splitter::new(1024);
    let spans = splitter.feed(stream);
    for span in spans.iter().take(4) {
        let side = if first == CHOSEN_BY_THE_CORE {
            span.analyse(&choose(&[span]))
        } else {
            span.analyse(&config)
        };
        assert_eq!(
            Ok(span.bits()),
            rebuild(span.history(), span.plain(), &side).as_ref()
        );
    }
});
