//! Encoders that are run again, to write what they wrote once.
//!
//! What an encoder writes depends on its code and its settings alone, so these are built from sources
//! of fixed versions, never linked with whatever a machine has: liblzma 5.8.4 (LZMA2), a port of
//! libbzip2 1.0.8, libzstd 1.5.7. Their versions are in Cargo.lock; the golden vectors in the tests fail
//! when one of them begins to write something else.

use liblzma::stream::{Action as LzmaAction, Filters, LzmaOptions, Status as LzmaStatus, Stream};
use zstd::stream::raw::{CParameter, Encoder as ZstdEncoder, InBuffer, Operation, OutBuffer};

/// How much room for output is made at a time.
const ROOM: usize = 64 * 1024;

/// The bit of an xz preset that stands for `-e`.
const EXTREME: u32 = 1 << 31;

/// An encoder, fed with plain bytes in pieces.
pub enum Encoder {
    /// Raw LZMA2, as it lies in a block of an xz file.
    Lzma2(Stream),
    /// A whole bzip2 stream.
    Bzip2(bzip2::Compress),
    /// A whole zstd frame.
    Zstd(ZstdEncoder<'static>),
}

/// Settings of zstd that change what it writes.
#[derive(Clone, Copy, Debug)]
pub struct ZstdSettings {
    /// -131072 to 22.
    pub level: i32,
    /// Base 2 logarithm of the window, or 0 for what the level says.
    pub window_log: u32,
    /// Long distance matching (`--long`).
    pub long: bool,
    /// Whether the frame is made in jobs, as the command does unless told `--single-thread`.
    pub jobs: bool,
    /// Whether the frame ends in a checksum.
    pub checksum: bool,
    /// The size that the frame's header states, if it does.
    pub content_size: Option<u64>,
}

impl Encoder {
    /// An LZMA2 encoder with the settings of `xz -0` to `xz -9`, `extreme` for `-e`, and a
    /// dictionary of `dict_size` bytes.
    ///
    /// # Errors
    /// When liblzma refuses the settings.
    pub fn lzma2(preset: u32, extreme: bool, dict_size: u32) -> Result<Self, String> {
        let flags = if extreme { EXTREME } else { 0 };
        let mut options = LzmaOptions::new_preset(preset | flags).map_err(text)?;
        options.dict_size(dict_size);
        let mut filters = Filters::new();
        filters.lzma2(&options);
        Ok(Self::Lzma2(Stream::new_raw_encoder(&filters).map_err(text)?))
    }

    /// A bzip2 encoder of block size `level` (1 to 9) times 100,000 bytes.
    ///
    /// # Errors
    /// When the level is none.
    pub fn bzip2(level: u32) -> Result<Self, String> {
        let level = bzip2::Compression::try_new(level).ok_or("a bzip2 level is 1 to 9")?;
        Ok(Self::Bzip2(bzip2::Compress::new(level, 0)))
    }

    /// A zstd encoder.
    ///
    /// # Errors
    /// When libzstd refuses the settings.
    pub fn zstd(settings: ZstdSettings) -> Result<Self, String> {
        let mut encoder = ZstdEncoder::new(settings.level).map_err(text)?;
        let mut parameters = vec![
            CParameter::ChecksumFlag(settings.checksum),
            CParameter::ContentSizeFlag(settings.content_size.is_some()),
            CParameter::EnableLongDistanceMatching(settings.long),
            CParameter::NbWorkers(u32::from(settings.jobs)),
        ];
        if settings.window_log != 0 {
            parameters.push(CParameter::WindowLog(settings.window_log));
        }
        for parameter in parameters {
            encoder.set_parameter(parameter).map_err(text)?;
        }
        encoder
            .set_pledged_src_size(settings.content_size)
            .map_err(text)?;
        Ok(Self::Zstd(encoder))
    }

    /// What the encoder writes now that `plain` follows.
    ///
    /// # Errors
    /// When the encoder fails, for want of memory for example.
    pub fn write(&mut self, plain: &[u8]) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        let mut rest = plain;
        while !rest.is_empty() {
            out.reserve(ROOM);
            let taken = match self {
                Self::Lzma2(stream) => {
                    let before = stream.total_in();
                    stream
                        .process_vec(rest, &mut out, LzmaAction::Run)
                        .map_err(text)?;
                    stream.total_in() - before
                }
                Self::Bzip2(stream) => {
                    let before = stream.total_in();
                    stream
                        .compress_vec(rest, &mut out, bzip2::Action::Run)
                        .map_err(text)?;
                    stream.total_in() - before
                }
                Self::Zstd(stream) => zstd_write(stream, rest, &mut out)?,
            };
            rest = &rest[usize::try_from(taken).map_err(text)?..];
        }
        Ok(out)
    }

    /// What the encoder still has to write, the end of the stream last. It cannot be used after that.
    ///
    /// # Errors
    /// When the encoder fails.
    pub fn finish(&mut self) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        loop {
            out.reserve(ROOM);
            let done = match self {
                Self::Lzma2(stream) => {
                    stream
                        .process_vec(&[], &mut out, LzmaAction::Finish)
                        .map_err(text)?
                        == LzmaStatus::StreamEnd
                }
                Self::Bzip2(stream) => {
                    stream
                        .compress_vec(&[], &mut out, bzip2::Action::Finish)
                        .map_err(text)?
                        == bzip2::Status::StreamEnd
                }
                Self::Zstd(stream) => zstd_finish(stream, &mut out)?,
            };
            if done {
                return Ok(out);
            }
        }
    }
}

fn zstd_write(stream: &mut ZstdEncoder<'static>, rest: &[u8], out: &mut Vec<u8>) -> Result<u64, String> {
    let mut input = InBuffer::around(rest);
    let start = out.len();
    let mut output = OutBuffer::around_pos(out, start);
    stream.run(&mut input, &mut output).map_err(text)?;
    u64::try_from(input.pos()).map_err(text)
}

fn zstd_finish(stream: &mut ZstdEncoder<'static>, out: &mut Vec<u8>) -> Result<bool, String> {
    let start = out.len();
    let mut output = OutBuffer::around_pos(out, start);
    Ok(stream.finish(&mut output, true).map_err(text)? == 0)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> Vec<u8> {
        (0..300_000u32)
            .flat_map(|n| (n % 1000 * (n / 777)).to_le_bytes())
            .collect()
    }

    fn run(mut encoder: Encoder, plain: &[u8], piece: usize) -> Vec<u8> {
        let mut out = Vec::new();
        for part in plain.chunks(piece) {
            out.extend(encoder.write(part).unwrap());
        }
        out.extend(encoder.finish().unwrap());
        out
    }

    fn settings() -> ZstdSettings {
        ZstdSettings {
            level: 3,
            window_log: 0,
            long: false,
            jobs: true,
            checksum: true,
            content_size: None,
        }
    }

    #[test]
    fn pieces_make_no_difference() {
        let plain = plain();
        let encoders: [fn() -> Encoder; 4] = [
            || Encoder::lzma2(1, false, 1 << 20).unwrap(),
            || Encoder::bzip2(9).unwrap(),
            || Encoder::zstd(settings()).unwrap(),
            || {
                Encoder::zstd(ZstdSettings {
                    jobs: false,
                    ..settings()
                })
                .unwrap()
            },
        ];
        for make in encoders {
            let whole = run(make(), &plain, plain.len());
            assert!(whole.len() < plain.len());
            assert_eq!(whole, run(make(), &plain, 100_001));
        }
    }

    #[test]
    fn nothing_is_a_stream_too() {
        assert_eq!(vec![0], run(Encoder::lzma2(6, true, 1 << 23).unwrap(), &[], 1));
        assert_eq!(14, run(Encoder::bzip2(1).unwrap(), &[], 1).len());
        assert!(!run(Encoder::zstd(settings()).unwrap(), &[], 1).is_empty());
    }

    #[test]
    fn impossible_settings_are_refused() {
        assert!(Encoder::lzma2(10, false, 1 << 20).is_err());
        assert!(Encoder::lzma2(6, false, 1).is_err());
        assert!(Encoder::bzip2(0).is_err());
        assert!(Encoder::bzip2(10).is_err());
        assert!(
            Encoder::zstd(ZstdSettings {
                window_log: 99,
                ..settings()
            })
            .is_err()
        );
    }
}
