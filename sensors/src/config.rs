//! The `load_sensor` parameter of the cluster and host configuration (sge_conf(5)).

use proto::diagnostic::{Code, Diagnostic};

/// One load sensor to run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SensorSpec {
    /// The absolute path of the program or script.
    pub path: String,
    /// Its arguments; an extension, 8.1.9 has none.
    pub arguments: Vec<String>,
}

impl std::fmt::Display for SensorSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.path)?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {argument}"))
    }
}

/// The sensors in the value of `load_sensor`, in order: later ones override values of earlier ones.
///
/// Entries are separated by commas or newlines. `none` in any case, or nothing, means no sensor.
/// Words after a path are arguments. An entry that is there twice runs once.
///
/// # Errors
/// Where a path is not absolute, with the words of 8.1.9.
pub fn parse_load_sensor(value: &str) -> Result<Vec<SensorSpec>, Diagnostic> {
    let mut sensors = Vec::new();
    for entry in value
        .split([',', '\n'])
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
    {
        if entry.eq_ignore_ascii_case("none") {
            continue;
        }
        let sensor = parse_entry(entry)?;
        if !sensors.contains(&sensor) {
            sensors.push(sensor);
        }
    }
    Ok(sensors)
}

fn parse_entry(entry: &str) -> Result<SensorSpec, Diagnostic> {
    if !entry.starts_with('/') {
        let what = "denied: the path given for \"load_sensor\" must start with a \"/\"";
        return Err(Diagnostic::new(Code::BadValue, what)
            .at(format!("load_sensor {entry}"))
            .fix("give the absolute path"));
    }
    let mut words = entry.split_whitespace().map(str::to_owned);
    let path = words.next().unwrap_or_default();
    Ok(SensorSpec {
        path,
        arguments: words.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &str, expected: &[&str]) {
        let sensors: Vec<String> = parse_load_sensor(value)
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(sensors, expected, "{value:?}");
    }

    #[test]
    fn sensors_are_separated_by_commas_and_newlines() {
        check("/a/x.sh,/b/y.sh", &["/a/x.sh", "/b/y.sh"]);
        check("/a/x.sh\n /b/y.sh ,\n", &["/a/x.sh", "/b/y.sh"]);
        check("/a/x.sh,/a/x.sh", &["/a/x.sh"]);
    }

    #[test]
    fn none_means_no_sensor() {
        for value in ["none", "NONE", "", " , "] {
            check(value, &[]);
        }
    }

    #[test]
    fn words_after_the_path_are_arguments() {
        let sensors = parse_load_sensor("/opt/mic/sensor -v  /x, /b").unwrap();
        assert_eq!(
            sensors[0],
            SensorSpec {
                path: "/opt/mic/sensor".to_owned(),
                arguments: vec!["-v".to_owned(), "/x".to_owned()]
            }
        );
        assert_eq!(sensors.len(), 2);
    }

    #[test]
    fn a_relative_path_is_refused_with_the_words_of_8_1_9() {
        let refusal = parse_load_sensor("/a,good.sh").unwrap_err();
        assert_eq!(
            refusal.what,
            "denied: the path given for \"load_sensor\" must start with a \"/\""
        );
    }
}
