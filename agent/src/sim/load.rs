//! The load values that all simulated hosts report: this machine's, or what a file says instead.

use crate::reports::MachineValues;
use ::sensors::collector::Values;
use ::sensors::memory::MemFree;
use proto::diagnostic::{Code, Diagnostic};
use proto::id::AttributeName;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// How often the values are taken and the file is read.
const EVERY: Duration = Duration::from_secs(2);

/// The source of shared values.
pub(super) struct SharedLoad {
    machine: MachineValues,
    file: Option<PathBuf>,
}

impl SharedLoad {
    /// Values of this machine under those of `file`.
    ///
    /// # Errors
    /// A file that cannot be read, or the line that is no `name=value`.
    pub(super) fn new(file: Option<PathBuf>) -> Result<Self, Diagnostic> {
        let load = Self {
            machine: MachineValues::default(),
            file,
        };
        load.read_file()?;
        Ok(load)
    }

    /// The values now.
    ///
    /// # Errors
    /// As [`SharedLoad::new`].
    pub(super) async fn sample(&mut self) -> Result<Arc<Values>, Diagnostic> {
        let mut values = self.machine.sample(MemFree::Available).await;
        values.extend(self.read_file()?);
        Ok(Arc::new(values))
    }

    /// Takes the values again and again; a file that became unreadable leaves them as they were.
    pub(super) async fn keep_fresh(mut self, sender: watch::Sender<Arc<Values>>) {
        while !sender.is_closed() {
            sleep(EVERY).await;
            match self.sample().await {
                Ok(values) => drop(sender.send_replace(values)),
                Err(refusal) => tracing::warn!("{refusal}"),
            }
        }
    }

    fn read_file(&self) -> Result<Values, Diagnostic> {
        let Some(path) = &self.file else {
            return Ok(Values::new());
        };
        let text = std::fs::read_to_string(path).map_err(|error| {
            Diagnostic::new(Code::SystemRefused, format!("cannot read {}", path.display())).why(error.to_string())
        })?;
        parse(&text).map_err(|line| {
            Diagnostic::new(Code::BadSyntax, "load values are given as name=value")
                .at(format!("{}:{line}", path.display()))
                .fix("write one name=value a line; # begins a comment")
        })
    }
}

/// The values of a file, or the line that is none, counted from 1.
fn parse(text: &str) -> Result<Values, usize> {
    let lines = (1..)
        .zip(text.lines().map(str::trim))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let value = |(number, line): (usize, &str)| {
        let (name, value) = line.split_once('=').ok_or(number)?;
        let name = name.trim();
        if name.is_empty() {
            Err(number)
        } else {
            Ok((AttributeName::from(name), value.trim().to_owned()))
        }
    };
    lines.map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_values_has_one_name_and_value_a_line() {
        let values = parse("# load\nload_avg = 0.5\n\nlic=4\n").unwrap();
        assert_eq!(values["load_avg"], "0.5");
        assert_eq!(values["lic"], "4");
        assert_eq!(parse("a=1\nload_avg 0.5\n"), Err(2));
        assert_eq!(parse("=1\n"), Err(1));
    }
}
