//! `loadcheck`: the load values of this host as site scripts read them, without a cell. The program
//! has that name below `utilbin`, and is `gridwright-agent loadcheck` otherwise.

use ::sensors::collector::{Collector, CollectorSettings, Values};
use std::fmt::Write as _;
use std::time::Duration;

/// The values in the order of Grid Engine 8.1.9.
const SHOWN: [&str; 19] = [
    "arch",
    "num_proc",
    "m_socket",
    "m_core",
    "m_thread",
    "m_topology",
    "load_short",
    "load_medium",
    "load_long",
    "mem_free",
    "swap_free",
    "virtual_free",
    "mem_total",
    "swap_total",
    "virtual_total",
    "mem_used",
    "swap_used",
    "virtual_used",
    "cpu",
];

const USAGE: &str = "usage: loadcheck [-cb] | [-int] [-loadval name]\n\
                     \t\t[-cb] \t\t\t\t Shows core binding and processor topology related information.\n\
                     \t\t[-int]\t\t\t\t Print as integer\n\
                     \t\t[-loadval]\t\t\t Select specific load value\n";

/// `cpu` is the share of this time that was not idle.
const CPU_SAMPLE: Duration = Duration::from_millis(200);

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct LoadQuestion {
    topology: bool,
    whole_numbers: bool,
    only: Option<String>,
}

impl LoadQuestion {
    /// Reads the words behind the name. `None` means that the usage does not have them.
    fn parse(words: &[String]) -> Option<Self> {
        let mut question = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "-cb" => question.topology = true,
                "-int" => question.whole_numbers = true,
                "-loadval" => question.only = Some(words.next()?.clone()),
                _ => return None,
            }
        }
        Some(question)
    }

    /// The answer. A name that is not one of the values has none, as in 8.1.9.
    fn answer(&self, values: &Values) -> String {
        if self.topology {
            return topology(values);
        }
        let is_meant = |name: &&str| self.only.as_deref().is_none_or(|only| only == *name);
        let mut text = String::new();
        for name in SHOWN.into_iter().filter(is_meant) {
            if let Some(value) = values.get(name) {
                let _ = writeln!(text, "{name:<15} {}", self.shown(name, value));
            }
        }
        text
    }

    fn shown(&self, name: &str, value: &str) -> String {
        if name == "cpu" {
            return format!("{:.1}%", value.parse().unwrap_or(0.0));
        }
        match value.strip_suffix('M') {
            Some(mebibytes) if self.whole_numbers => mebibytes.split('.').next().unwrap_or_default().to_owned(),
            Some(_) | None => value.to_owned(),
        }
    }
}

fn topology(values: &Values) -> String {
    let value = |name: &str| values.get(name).map_or("-", String::as_str);
    format!(
        "Number of sockets:\t\t{}\nNumber of cores:\t\t{}\nNumber of threads:\t\t{}\nTopology:\t\t\t{}\n",
        value("m_socket"),
        value("m_core"),
        value("m_thread"),
        value("m_topology")
    )
}

/// Prints what the words behind the name ask for. Returns the exit code.
pub fn run(words: &[String]) -> u8 {
    let Some(question) = LoadQuestion::parse(words) else {
        eprint!("{USAGE}");
        return 1;
    };
    let mut collector = Collector::new(CollectorSettings {
        disks: Vec::new(),
        ..CollectorSettings::default()
    });
    collector.sample();
    std::thread::sleep(CPU_SAMPLE);
    print!("{}", question.answer(&collector.sample().values));
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(words: &[&str]) -> Option<String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let values = [
            ("arch", "lx-amd64"),
            ("cpu", "12.345000"),
            ("m_topology", "SCC"),
            ("mem_free", "22730.015625M"),
            ("tmp_free", "1.0M"),
        ];
        let values = values.map(|(name, value)| (name.into(), value.to_owned())).into();
        Some(LoadQuestion::parse(&words)?.answer(&values))
    }

    #[test]
    fn values_are_printed_as_grid_engine_prints_them() {
        for (words, expected) in [
            (
                &[][..],
                "arch            lx-amd64\nm_topology      SCC\nmem_free        22730.015625M\ncpu             12.3%\n",
            ),
            (&["-int", "-loadval", "mem_free"], "mem_free        22730\n"),
            (&["-loadval", "cpu", "-int"], "cpu             12.3%\n"),
            (&["-loadval", "nosuch"], ""),
            (&["-loadval", "tmp_free"], ""),
        ] {
            assert_eq!(answer(words).as_deref(), Some(expected), "{words:?}");
        }
        assert!(answer(&["-cb"]).is_some_and(|text| text.ends_with("Topology:\t\t\tSCC\n")));
        for wrong in [&["-loadval"][..], &["x"], &["-x"]] {
            assert_eq!(answer(wrong), None, "{wrong:?}");
        }
    }
}
