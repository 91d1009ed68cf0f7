//! Variables of the submitting environment that travel with a job.

use proto::text;

/// Everything that `-V` exports, byte for byte: also functions that bash exports, which `module`
/// and its like are.
pub fn exported() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().map(|(name, value)| (text::from_os(&name), text::from_os(&value)))
}

/// The value of a variable of this environment.
pub fn value(name: &str) -> Option<String> {
    std::env::var_os(text::to_os(name)).map(|value| text::from_os(&value))
}

/// What `-v` names; a name without a value takes it from the environment, empty where that has
/// none.
pub fn named(variables: &[(String, Option<String>)]) -> impl Iterator<Item = (String, String)> + '_ {
    let value_of = |name: &str| value(name).unwrap_or_default();
    variables.iter().map(move |(name, given)| (name.clone(), given.clone().unwrap_or_else(|| value_of(name))))
}
