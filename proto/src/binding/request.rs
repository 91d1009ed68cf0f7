//! What `-binding` says, with the words of Grid Engine 8.1.9 for what it cannot say.

use super::topology::CorePlace;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The most cores that one request may name or count.
pub const MAX_BOUND_CORES: u32 = 65_536;

/// Who binds the job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BindingInstance {
    /// `set`: its host does.
    #[default]
    Set,
    /// `env`: the job, by `SGE_BINDING`.
    Env,
    /// `pe`: the parallel environment, by the fourth column of `PE_HOSTFILE`.
    Pe,
}

impl BindingInstance {
    /// All of them.
    pub const ALL: [BindingInstance; 3] = [BindingInstance::Set, BindingInstance::Env, BindingInstance::Pe];

    /// The word of `-binding`.
    pub fn as_str(self) -> &'static str {
        match self {
            BindingInstance::Set => "set",
            BindingInstance::Env => "env",
            BindingInstance::Pe => "pe",
        }
    }

    /// The number of Grid Engine 8.1.9 (`BN_type`).
    pub fn number(self) -> u32 {
        match self {
            BindingInstance::Pe => 1,
            BindingInstance::Env => 2,
            BindingInstance::Set => 3,
        }
    }
}

/// How many cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CoreAmount {
    /// `slots`: as many as the task has slots on the host.
    Slots,
    /// A number.
    Cores(u32),
}

impl fmt::Display for CoreAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CoreAmount::Slots => f.write_str("slots"),
            CoreAmount::Cores(cores) => cores.fmt(f),
        }
    }
}

/// Which cores of a host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BindingStrategy {
    /// `linear[:AMOUNT[:SOCKET,CORE]]`: one next to the other.
    Linear {
        /// How many.
        amount: CoreAmount,
        /// The first one. `None` means that it is searched.
        first: Option<CorePlace>,
    },
    /// `striding:AMOUNT:STEP[:SOCKET,CORE]`: each `step` cores behind the one before.
    Striding {
        /// How many.
        amount: u32,
        /// The distance.
        step: u32,
        /// The first one. `None` means that it is searched.
        first: Option<CorePlace>,
    },
    /// `explicit:SOCKET,CORE[:…]`: these, each once.
    Explicit(Vec<CorePlace>),
}

/// A request for cores: `-binding [INSTANCE] STRATEGY`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BindingRequest {
    /// Who binds the job.
    #[serde(default)]
    pub instance: BindingInstance,
    /// Which cores.
    pub strategy: BindingStrategy,
}

/// Why a text is not a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindingError {
    /// It begins with none of the known words.
    Strategy,
    /// The part of the strategy of this name is missing or is not a number.
    Part(BindingPart, &'static str),
    /// `explicit` without a colon.
    NoList,
    /// `explicit:` without a pair.
    NoPair,
    /// The first pair has no core.
    NoFirstCore,
    /// The socket of the first pair is not a number.
    FirstSocket,
    /// The core of the first pair is not a number.
    FirstCore,
    /// A later pair has no core.
    NoCore,
    /// The socket of a later pair is not a number.
    Socket,
    /// The core of a later pair is not a number.
    Core,
    /// A pair is there twice.
    NotUnique,
}

/// The part of a strategy that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindingPart {
    /// The number of cores, and in a stride the step too.
    Amount,
    /// The socket of the first core.
    Socket,
    /// The first core.
    Core,
}

impl fmt::Display for BindingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BindingError::Strategy => f.write_str("couldn't parse binding parameter (no strategy found)"),
            BindingError::Part(BindingPart::Amount, strategy) => write!(f, "couldn't parse amount ({strategy})"),
            BindingError::Part(BindingPart::Socket, strategy) => {
                write!(f, "couldn't parse socket number ({strategy})")
            }
            BindingError::Part(BindingPart::Core, strategy) => write!(f, "couldn't parse core number ({strategy})"),
            BindingError::NoList => f.write_str("'explicit:' not found in string!"),
            BindingError::NoPair => f.write_str("No <socket,core> pair given!"),
            BindingError::NoFirstCore => f.write_str("Missing first core number!"),
            BindingError::FirstSocket => f.write_str("First socket is not a number!"),
            BindingError::FirstCore => f.write_str("First core is not a number!"),
            BindingError::NoCore => f.write_str("No core for a given socket!"),
            BindingError::Socket => f.write_str("Socket is not a number!"),
            BindingError::Core => f.write_str("Core is not a number!"),
            BindingError::NotUnique => f.write_str("<socket,core> pairs are not unique!"),
        }
    }
}

impl std::error::Error for BindingError {}

impl FromStr for BindingStrategy {
    type Err = BindingError;

    fn from_str(text: &str) -> Result<BindingStrategy, BindingError> {
        let (word, rest) = text
            .split_once(':')
            .map_or((text, None), |(word, rest)| (word, Some(rest)));
        match word {
            "linear" | "linear_automatic" => linear(rest.unwrap_or_default()),
            "striding" | "striding_automatic" => striding(rest.unwrap_or_default()),
            "explicit" => explicit(rest.ok_or(BindingError::NoList)?),
            _ => Err(BindingError::Strategy),
        }
    }
}

/// A number of cores, or of a core.
fn number(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|number| *number <= MAX_BOUND_CORES);
    number.filter(|_| is_number)
}

fn linear(text: &str) -> Result<BindingStrategy, BindingError> {
    let wrong = |part| BindingError::Part(part, "linear");
    let (amount, rest) = text.split_once(':').unwrap_or((text, ""));
    let amount = match amount {
        "" | "slots" => CoreAmount::Slots,
        cores => CoreAmount::Cores(number(cores).ok_or(wrong(BindingPart::Amount))?),
    };
    if rest.is_empty() {
        return Ok(BindingStrategy::Linear { amount, first: None });
    }
    let (socket, core) = rest.split_once(',').unwrap_or((rest, ""));
    // 8.1.9 calls a wrong socket an amount.
    let socket = number(socket).ok_or(wrong(BindingPart::Amount))?;
    let core = number(core).ok_or(wrong(BindingPart::Core))?;
    let first = Some(CorePlace { socket, core });
    Ok(BindingStrategy::Linear { amount, first })
}

fn striding(text: &str) -> Result<BindingStrategy, BindingError> {
    let wrong = |part| BindingError::Part(part, "striding");
    let mut parts = text.splitn(3, ':');
    let mut amount = || number(parts.next().unwrap_or_default()).ok_or(wrong(BindingPart::Amount));
    let (amount, step) = (amount()?, amount()?);
    let rest = parts.next().unwrap_or_default();
    if rest.is_empty() {
        let first = None;
        return Ok(BindingStrategy::Striding { amount, step, first });
    }
    let (socket, core) = rest.split_once(',').unwrap_or((rest, ""));
    if socket.is_empty() || core.is_empty() {
        return Err(wrong(BindingPart::Core));
    }
    let socket = number(socket).ok_or(wrong(BindingPart::Socket))?;
    let core = number(core).ok_or(wrong(BindingPart::Core))?;
    let first = Some(CorePlace { socket, core });
    Ok(BindingStrategy::Striding { amount, step, first })
}

fn explicit(text: &str) -> Result<BindingStrategy, BindingError> {
    let mut places = Vec::new();
    let mut seen = BTreeSet::new();
    let text = text.strip_suffix(':').unwrap_or(text);
    for pair in text.split(':').filter(|_| !text.is_empty()) {
        let place = pair_of(pair, places.is_empty())?;
        if !seen.insert(place) {
            return Err(BindingError::NotUnique);
        }
        places.push(place);
        if places.len() > MAX_BOUND_CORES as usize {
            return Err(BindingError::Core);
        }
    }
    match places.is_empty() {
        true => Err(BindingError::NoPair),
        false => Ok(BindingStrategy::Explicit(places)),
    }
}

fn pair_of(pair: &str, is_first: bool) -> Result<CorePlace, BindingError> {
    let of_place = |first, later| if is_first { first } else { later };
    let missing = of_place(BindingError::NoFirstCore, BindingError::NoCore);
    if pair.is_empty() {
        return Err(of_place(BindingError::NoPair, BindingError::Socket));
    }
    let (socket, core) = pair.split_once(',').ok_or(missing)?;
    if socket.is_empty() || core.is_empty() {
        return Err(missing);
    }
    let socket = number(socket).ok_or(of_place(BindingError::FirstSocket, BindingError::Socket))?;
    let core = number(core).ok_or(of_place(BindingError::FirstCore, BindingError::Core))?;
    Ok(CorePlace { socket, core })
}

impl fmt::Display for BindingStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = |first: &Option<CorePlace>| first.map_or_else(String::new, |first| format!(":{first}"));
        match self {
            BindingStrategy::Linear { amount, first } => write!(f, "linear:{amount}{}", place(first)),
            BindingStrategy::Striding { amount, step, first } => {
                write!(f, "striding:{amount}:{step}{}", place(first))
            }
            BindingStrategy::Explicit(places) => {
                f.write_str("explicit")?;
                places.iter().try_for_each(|place| write!(f, ":{place}"))
            }
        }
    }
}

impl fmt::Display for BindingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.instance.as_str(), self.strategy)
    }
}

impl BindingStrategy {
    /// Whether the numbers are those that a command line may have: a program may send others.
    pub fn is_bearable(&self) -> bool {
        match self {
            Self::Linear { amount, first: _ } => match amount {
                CoreAmount::Slots => true,
                CoreAmount::Cores(cores) => *cores <= MAX_BOUND_CORES,
            },
            Self::Striding { amount, step, first: _ } => *amount <= MAX_BOUND_CORES && *step <= MAX_BOUND_CORES,
            Self::Explicit(places) => {
                places.len() <= MAX_BOUND_CORES as usize && places.iter().collect::<BTreeSet<_>>().len() == places.len()
            }
        }
    }

    /// Whether it counts cores and counts none. Grid Engine 8.1.9 refuses that at the submission.
    pub fn is_empty(&self) -> bool {
        match self {
            BindingStrategy::Linear { amount, .. } => *amount == CoreAmount::Cores(0),
            BindingStrategy::Striding { amount, .. } => *amount == 0,
            BindingStrategy::Explicit(places) => places.is_empty(),
        }
    }
}
