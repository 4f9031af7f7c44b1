//! What analysing a span is told of its encoder, and how that is written in side information.
//!
//! The written form is a byte that says what follows, then the numbers of an expert, if there is one, then
//! those of a model, if there is one. A value has one written form.

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
const MODEL: u8 = 2;

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
        let has = |part: bool, flag: u8| if part { flag } else { 0 };
        let mut bytes = vec![has(self.expert.is_some(), EXPERT) | has(self.model.is_some(), MODEL)];
        if let Some(params) = &self.expert {
            params.write(&mut bytes);
        }
        if let Some(params) = &self.model {
            bytes.extend(params.encode());
        }
        bytes
    }

    /// A configuration, and what follows it.
    ///
    /// # Errors
    ///
    /// `Error::Side` if these bytes are not what encoding one gives.
    pub fn decode(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
        let (&parts, mut rest) = bytes.split_first().ok_or(Error::Side("it is cut short"))?;
        if parts & !(EXPERT | MODEL) != 0 {
            return Err(Error::Side("a kind of configuration that is not known"));
        }
        let mut config = Self::default();
        if parts & EXPERT != 0 {
            config.expert = Some(Params::read(&mut rest)?);
        }
        if parts & MODEL != 0 {
            let (params, size) = ModelParams::decode(rest)?;
            config.model = Some(params);
            rest = &rest[size..];
        }
        Ok((config, rest))
    }

    /// Whether lengths of blocks are told in plain bytes, as an expert needs that has to know them.
    #[must_use]
    pub fn by_plain(&self) -> bool {
        matches!(self.expert, Some(Params::Klauspost(_)))
    }
}
