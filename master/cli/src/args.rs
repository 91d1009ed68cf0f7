//! Options as data: one table a command gives its parser and its `-help`; an option of 8.1.9 that
//! is not supported stands in the table too, so that it is refused by name and never ignored.

use crate::exit;
use crate::fail::Fail;
use proto::diagnostic::{Code, Diagnostic};
use std::collections::VecDeque;
use std::fmt::Write as _;

/// What follows an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueCount {
    /// Nothing.
    None,
    /// One word, or none where an option follows or nothing does.
    Optional,
    /// Exactly one word.
    One,
    /// One word, and in front of it perhaps one of these (`-binding [set] linear:1`).
    Led(&'static [&'static str]),
    /// Exactly two words (`-pe NAME RANGE`).
    Two,
    /// At least this many words, up to the next word that begins with `-`.
    AtLeast(usize),
}

/// Whether an option does what 8.1.9 does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It does.
    Yes,
    /// It is refused; the text says what to do instead, or that it is planned.
    Not(&'static str),
}

/// One option of one command.
#[derive(Clone, Copy, Debug)]
pub struct OptionDef {
    /// With its dash or dashes.
    pub name: &'static str,
    /// What follows it.
    pub values: ValueCount,
    /// How the values are called in `-help`.
    pub placeholder: &'static str,
    /// One line for `-help`.
    pub help: &'static str,
    /// What the manual page says beyond that line: values, the default, an example. May be empty.
    pub details: &'static str,
    /// Whether it works.
    pub support: Support,
}

/// An option without values.
pub const fn flag(name: &'static str, help: &'static str) -> OptionDef {
    OptionDef {
        name,
        values: ValueCount::None,
        placeholder: "",
        help,
        details: "",
        support: Support::Yes,
    }
}

/// An option with values.
pub const fn with(name: &'static str, values: ValueCount, placeholder: &'static str, help: &'static str) -> OptionDef {
    OptionDef {
        name,
        values,
        placeholder,
        help,
        details: "",
        support: Support::Yes,
    }
}

/// The same option, refused with `instead` as the way out.
pub const fn unsupported(option: OptionDef, instead: &'static str) -> OptionDef {
    OptionDef {
        support: Support::Not(instead),
        ..option
    }
}

/// The same option, with more for its manual page.
pub const fn detailed(option: OptionDef, details: &'static str) -> OptionDef {
    OptionDef { details, ..option }
}

/// What words that are no options mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operands {
    /// There are none: such a word is an error.
    None,
    /// They are collected wherever they stand.
    Anywhere,
    /// They are collected wherever they stand. A lone `-` is an error, as in 8.1.9.
    AnywhereWithoutDash,
    /// They are collected wherever they stand. A lone `-` ends the options: it and all that follows
    /// are operands.
    UntilDash,
    /// The first one ends the options: it and all that follows are operands
    /// (`qsub [options] script args`).
    EndOptions,
    /// Like [`Operands::EndOptions`], and `--` is an operand too: it stands for a script on
    /// standard input.
    EndOptionsOrDashes,
}

/// One command.
#[derive(Clone, Copy, Debug)]
pub struct CommandDef {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// What the operands are called in `-help`.
    pub operand_placeholder: &'static str,
    /// What operands mean.
    pub operands: Operands,
    /// Its options in the order of `-help`.
    pub options: &'static [OptionDef],
    /// What the exit codes mean, for `-help`.
    pub exit_codes: &'static str,
}

/// One option as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenOption {
    /// The name in the table.
    pub name: &'static str,
    /// Its values.
    pub values: Vec<String>,
}

/// A command line, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// Options in the order given.
    pub given: Vec<GivenOption>,
    /// Words that are no options.
    pub operands: Vec<String>,
}

impl CommandLine {
    /// Whether the option was given.
    pub fn has(&self, name: &str) -> bool {
        self.given.iter().any(|given| given.name == name)
    }

    /// The first value of the option, of its last use.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.values(name).and_then(|values| values.first()).map(String::as_str)
    }

    /// All values of the option's last use.
    pub fn values(&self, name: &str) -> Option<&[String]> {
        self.given
            .iter()
            .rev()
            .find(|given| given.name == name)
            .map(|given| given.values.as_slice())
    }
}

impl CommandDef {
    /// Takes a command line apart.
    ///
    /// # Errors
    /// A refusal that names the option: unknown, not supported, or short of a value, with the exit
    /// code of 8.1.9.
    pub fn parse(&self, words: Vec<String>) -> Result<CommandLine, Fail> {
        self.read(words).map_err(|refusal| {
            let code = if refusal.code == Code::BadSyntax {
                self.voice().1
            } else {
                refusal.code.exit_code()
            };
            Fail::new(code, refusal)
        })
    }

    /// How a wrong option is told: what stands before the text, and the exit code. Each program of
    /// 8.1.9 has its own way.
    fn voice(&self) -> (String, u8) {
        match self.name {
            "qstat" | "qselect" | "qmod" => (String::new(), exit::FAILED),
            "qhost" | "qacct" | "qquota" | "qrstat" | "qrdel" | "qrsh" | "qlogin" | "qsh" => {
                ("error: ".to_owned(), exit::FAILED)
            }
            "qdel" | "qping" | "qrsub" => (format!("{}: ", self.name), exit::FAILED),
            "qhold" | "qrls" | "qresub" => ("qalter: ".to_owned(), exit::USAGE),
            name => (format!("{name}: "), exit::USAGE),
        }
    }

    /// Takes words apart that are not the command line itself: of a script, of an option file.
    ///
    /// # Errors
    /// As [`CommandDef::parse`].
    pub fn read(&self, words: Vec<String>) -> Result<CommandLine, Diagnostic> {
        let mut words = VecDeque::from(words);
        let mut parsed = CommandLine::default();
        while let Some(word) = words.pop_front() {
            let is_operand = word == "--" && self.operands == Operands::EndOptionsOrDashes;
            if is_operand || !is_option(&word) {
                self.take_operand(&mut parsed, word, &mut words)?;
                continue;
            }
            let option = self.option(&word)?;
            let values = self.take_values(option, &mut words)?;
            parsed.given.push(GivenOption {
                name: option.name,
                values,
            });
        }
        Ok(parsed)
    }

    fn take_operand(
        &self,
        parsed: &mut CommandLine,
        word: String,
        words: &mut VecDeque<String>,
    ) -> Result<(), Diagnostic> {
        match self.operands {
            Operands::None => Err(self.invalid_argument(&word)),
            Operands::AnywhereWithoutDash if word == "-" => Err(self.invalid_argument(&word)),
            Operands::Anywhere | Operands::AnywhereWithoutDash => {
                parsed.operands.push(word);
                Ok(())
            }
            Operands::UntilDash => {
                let is_end = word == "-";
                parsed.operands.push(word);
                if is_end {
                    parsed.operands.extend(words.drain(..));
                }
                Ok(())
            }
            Operands::EndOptions | Operands::EndOptionsOrDashes => {
                parsed.operands.push(word);
                parsed.operands.extend(words.drain(..));
                Ok(())
            }
        }
    }

    fn option(&self, word: &str) -> Result<&'static OptionDef, Diagnostic> {
        let called = |name: &str| self.options.iter().find(|option| option.name == name);
        let found = called(word).or_else(|| TWO_DASHES.contains(&word).then(|| called(&word[1..])).flatten());
        let option = found.ok_or_else(|| self.unknown(word))?;
        match option.support {
            Support::Yes => Ok(option),
            Support::Not(instead) => Err(Diagnostic::new(
                Code::NotSupported,
                format!("{}: option \"{word}\" of Grid Engine is not supported yet", self.name),
            )
            .fix(instead)),
        }
    }

    /// How many words behind a word are values of it. A value of an optional one or one of many
    /// does not count.
    pub fn values_behind(&self, word: &str) -> usize {
        let option = self.options.iter().find(|option| option.name == word);
        match option.map_or(ValueCount::None, |option| option.values) {
            ValueCount::None | ValueCount::Optional => 0,
            ValueCount::One | ValueCount::Led(_) => 1,
            ValueCount::Two => 2,
            ValueCount::AtLeast(least) => least,
        }
    }

    fn unknown(&self, word: &str) -> Diagnostic {
        let names = self.options.iter().map(|option| option.name);
        let near = names
            .min_by_key(|name| distance(name, word))
            .filter(|name| distance(name, word) <= 2);
        let error = self.invalid_argument(word);
        match near {
            Some(name) => error.fix(format!("did you mean {name}? All options: {} -help", self.name)),
            None => error,
        }
    }

    fn invalid_argument(&self, word: &str) -> Diagnostic {
        self.usage_error(format!("{}invalid option argument \"{word}\"", self.voice().0))
    }

    fn usage_error(&self, what: String) -> Diagnostic {
        Diagnostic::new(Code::BadSyntax, what).fix(format!("all options: {} -help", self.name))
    }

    fn take_values(&self, option: &OptionDef, words: &mut VecDeque<String>) -> Result<Vec<String>, Diagnostic> {
        let least = match option.values {
            ValueCount::None => return Ok(Vec::new()),
            ValueCount::Optional => usize::from(words.front().is_some_and(|word| !is_option(word))),
            ValueCount::One => 1,
            ValueCount::Led(leaders) => {
                let is_led = words.front().is_some_and(|word| leaders.contains(&word.as_str()));
                1 + usize::from(is_led && words.get(1).is_some_and(|word| !is_option(word)))
            }
            ValueCount::Two => 2,
            ValueCount::AtLeast(least) => least,
        };
        let mut values: Vec<String> = words.drain(..least.min(words.len())).collect();
        let is_missing = values.len() < least || self.has_no_empty_values() && values.iter().any(String::is_empty);
        if is_missing && option.values != ValueCount::Optional {
            return Err(self.usage_error(format!("{}{} option must have argument", self.voice().0, option.name)));
        }
        while matches!(option.values, ValueCount::AtLeast(_)) && words.front().is_some_and(|word| !is_option(word)) {
            values.extend(words.pop_front());
        }
        Ok(values)
    }

    /// Whether an empty word is no value for the command, as for these of 8.1.9; the others judge
    /// it by the option.
    fn has_no_empty_values(&self) -> bool {
        ["qstat", "qselect", "qmod", "qhost"].contains(&self.name)
    }

    /// The text of `-help`. Its first line is product and version, which programs read.
    pub fn help(&self) -> String {
        let mut text = format!("Gridwright {}\n", env!("CARGO_PKG_VERSION"));
        let _ = writeln!(
            text,
            "usage: {} [options] {}\n{}\n",
            self.name, self.operand_placeholder, self.summary
        );
        for option in self.options {
            let head = format!("[{}]", [option.name, option.placeholder].join(" ").trim_end());
            let note = if option.support == Support::Yes {
                ""
            } else {
                " (not supported yet)"
            };
            let _ = writeln!(text, "   {head:<38} {}{note}", option.help);
        }
        let _ = writeln!(text, "\nexit codes: {}", self.exit_codes);
        text
    }
}

/// Options of one dash that may be written with two, as other programs have them.
const TWO_DASHES: [&str; 2] = ["--help", "--fmt"];

/// Whether a word is an option: `-` alone is standard input, `-5` would be an option nobody has.
fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

/// The number of single-character edits between two words, for "did you mean".
pub fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const QSUB: CommandDef = CommandDef {
        name: "qsub",
        summary: "",
        operand_placeholder: "",
        operands: Operands::EndOptions,
        options: &[
            with("-N", ValueCount::One, "name", ""),
            with("-pe", ValueCount::Two, "name range", ""),
            flag("-cwd", ""),
            unsupported(flag("-pty", ""), "planned"),
        ],
        exit_codes: "",
    };

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn options_after_the_script_belong_to_the_script() {
        let parsed = QSUB.parse(words("-N x -pe mpi 2-4 job.sh -N y")).unwrap();
        assert_eq!(parsed.value("-N"), Some("x"));
        assert_eq!(parsed.values("-pe").unwrap(), ["mpi", "2-4"]);
        assert_eq!(parsed.operands, ["job.sh", "-N", "y"]);
    }

    #[test]
    fn unknown_unsupported_and_short_options_are_refused_by_name() {
        for (line, code, what) in [
            ("-cwe x", Code::BadSyntax, "qsub: invalid option argument \"-cwe\""),
            (
                "-pty",
                Code::NotSupported,
                "qsub: option \"-pty\" of Grid Engine is not supported yet",
            ),
            ("-pe mpi", Code::BadSyntax, "qsub: -pe option must have argument"),
        ] {
            let refusal = QSUB.read(words(line)).unwrap_err();
            assert_eq!((refusal.code, refusal.what.as_str()), (code, what));
            assert!(!refusal.fix.is_empty());
        }
        assert!(QSUB.read(words("-cwe")).unwrap_err().fix.contains("did you mean -cwd"));
    }

    #[test]
    fn a_leading_word_is_taken_with_the_value_behind_it() {
        const BINDING: CommandDef = CommandDef {
            options: &[
                with("-binding", ValueCount::Led(&["env", "set"]), "", ""),
                flag("-cwd", ""),
            ],
            ..QSUB
        };
        for (line, values, operands) in [
            ("-binding set linear:1 a b", vec!["set", "linear:1"], vec!["a", "b"]),
            ("-binding linear:1 a", vec!["linear:1"], vec!["a"]),
            ("-binding env -cwd", vec!["env"], vec![]),
        ] {
            let parsed = BINDING.parse(words(line)).unwrap();
            assert_eq!(parsed.values("-binding").unwrap(), values, "{line}");
            assert_eq!(parsed.operands, operands, "{line}");
        }
    }

    #[test]
    fn help_and_format_are_written_with_one_dash_or_two() {
        const BOTH: CommandDef = CommandDef {
            options: &[flag("-help", ""), with("-fmt", ValueCount::One, "", "")],
            ..QSUB
        };
        for line in ["-fmt json -help", "--fmt json --help"] {
            let parsed = BOTH.parse(words(line)).unwrap();
            assert_eq!(
                (parsed.value("-fmt"), parsed.has("-help")),
                (Some("json"), true),
                "{line}"
            );
        }
        let parsed = BOTH.parse(words("job.sh --help")).unwrap();
        assert!(
            !parsed.has("-help") && parsed.operands == ["job.sh", "--help"],
            "it is for the script"
        );
    }

    #[test]
    fn an_empty_word_is_no_value_where_8_1_9_takes_none() {
        const Q: &[OptionDef] = &[with("-q", ValueCount::One, "", "")];
        let command = |name| CommandDef {
            name,
            options: Q,
            ..QSUB
        };
        let empty = || vec!["-q".to_owned(), String::new()];
        let refusal = command("qstat").read(empty()).unwrap_err();
        assert_eq!(refusal.what, "-q option must have argument");
        assert_eq!(command("qsub").read(empty()).unwrap().value("-q"), Some(""));
    }

    #[test]
    fn distance_counts_edits() {
        assert_eq!(
            (distance("-cwd", "-cwd"), distance("-cwd", "-cwe"), distance("", "ab")),
            (0, 1, 2)
        );
    }
}
