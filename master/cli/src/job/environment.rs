//! Variables of the submitting environment that travel with a job.

/// Everything that `-V` exports. Functions that bash exports are programs, not values, and what is not UTF-8 cannot
/// travel in a message.
pub fn exported() -> impl Iterator<Item = (String, String)> {
    let all =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    all.filter(|(name, value)| !name.starts_with("BASH_FUNC_") && !value.starts_with("() {"))
}

/// What `-v` names; a name without a value takes it from the environment, empty where that has none.
pub fn named(variables: &[(String, Option<String>)]) -> impl Iterator<Item = (String, String)> + '_ {
    let value = |name: &str| std::env::var(name).unwrap_or_default();
    variables.iter().map(move |(name, given)| (name.clone(), given.clone().unwrap_or_else(|| value(name))))
}
