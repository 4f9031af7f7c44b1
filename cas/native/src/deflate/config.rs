//! What analysing a span is told of its encoder, and how that is written in side information.
//!
//! The written form is a byte that says what there is, then the numbers of an expert, if there is one, then
//! those of a model, if there is one that is not the default. A value has one written form.

use super::Error;
use super::expert::Params;
use super::model::ModelParams;

/// How the tokens of a span are foretold: by an expert; and what it misses, or all of them, by a model, or
/// else as if nothing was known.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Config {
    pub expert: Option<Params>,
    pub model: Option<ModelParams>,
}

const EXPERT: u8 = 1;
const DEFAULT_MODEL: u8 = 2;
const OTHER_MODEL: u8 = 4;

/// So many tokens cost little more without a model.
const FEW: usize = 2;

const UNKNOWN: Error = Error::Side("a kind of configuration that is not known");

impl Config {
    /// What is used for an encoder of which nothing is known.
    #[must_use]
    pub fn universal() -> Self {
        Self {
            expert: None,
            model: Some(ModelParams::default()),
        }
    }

    #[must_use]
    pub fn of_expert(params: Params) -> Self {
        Self {
            expert: Some(params),
            model: None,
        }
    }

    /// The written form, which tells where it ends.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (parts, numbers) = match &self.model {
            None => (0, Vec::new()),
            Some(model) if *model == ModelParams::default() => (DEFAULT_MODEL, Vec::new()),
            Some(model) => (OTHER_MODEL, model.encode()),
        };
        let mut bytes = vec![parts | if self.expert.is_some() { EXPERT } else { 0 }];
        if let Some(params) = &self.expert {
            params.write(&mut bytes);
        }
        bytes.extend(numbers);
        bytes
    }

    /// A configuration, and what follows it.
    ///
    /// # Errors
    ///
    /// `Error::Side` if these bytes are not what encoding one gives.
    pub fn decode(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
        let (&parts, mut rest) = bytes.split_first().ok_or(Error::Side("it is cut short"))?;
        let expert = if parts & EXPERT == 0 {
            None
        } else {
            Some(Params::read(&mut rest)?)
        };
        let model = match parts & !EXPERT {
            0 => None,
            DEFAULT_MODEL => Some(ModelParams::default()),
            OTHER_MODEL => {
                let (params, size) = ModelParams::decode(rest)?;
                rest = &rest[size..];
                if params == ModelParams::default() {
                    return Err(UNKNOWN);
                }
                Some(params)
            }
            _ => return Err(UNKNOWN),
        };
        Ok((Self { expert, model }, rest))
    }

    /// What codes the tokens that an expert misses so many of, or nobody knows how many: a model costs time, and
    /// its numbers have to be told.
    #[must_use]
    pub fn for_misses(&self, maybe_count: Option<usize>) -> Self {
        let model = match (self.expert, maybe_count) {
            (Some(_), Some(0..=FEW)) => None,
            (Some(_), _) => self.model.clone().or_else(|| Some(ModelParams::default())),
            (None, _) => self.model.clone(),
        };
        Self {
            expert: self.expert,
            model,
        }
    }

    /// Whether the expert has to know where blocks end, so that their lengths are to be told in plain bytes.
    #[must_use]
    pub fn by_plain(&self) -> bool {
        matches!(self.expert, Some(Params::Klauspost(_) | Params::GoFastest))
    }
}

#[cfg(test)]
mod tests {
    use super::Config;
    use crate::deflate::expert::{menu, variants};
    use crate::deflate::model::ModelParams;

    #[test]
    fn every_configuration_comes_back_and_is_written_in_one_way() {
        let mut other = ModelParams::default();
        other.chain.depth += 1;
        let experts: Vec<_> = menu()
            .into_iter()
            .flat_map(|expert| [vec![expert], variants(&expert, 9)].concat())
            .collect();
        for expert in [None].into_iter().chain(experts.into_iter().map(Some)) {
            for model in [None, Some(ModelParams::default()), Some(other.clone())] {
                let config = Config { expert, model };
                let written = [&config.encode()[..], b"rest"].concat();
                assert_eq!(Ok((config, &b"rest"[..])), Config::decode(&written));
            }
        }
    }

    #[test]
    fn any_bytes_are_the_written_form_of_what_is_read() {
        for first in 0..8 {
            for second in 0..=255 {
                for third in 0..=255 {
                    let bytes = [first, second, third, 6, 7, 2, 1, 0, 130, 1, 0, 3, 3, 0, 0, 0, 0];
                    if let Ok((config, rest)) = Config::decode(&bytes) {
                        assert_eq!(&bytes[..bytes.len() - rest.len()], config.encode());
                    }
                }
            }
        }
    }
}
