//! Gives seeded mutations of option files and script directives to the parsers of the commands.
//! `tests/fuzz` does the same with the parsers of the libraries.

#[path = "../../../tests/harness/fuzz/mutate.rs"]
pub mod mutate;

use crate::job::sources;
use mutate::Mutator;

/// Inputs of each test: some seconds altogether.
const INPUTS: usize = 2_000;

fn each(seeds: &[&str], run: impl Fn(&str)) {
    let seeds: Vec<String> = seeds.iter().map(|seed| (*seed).to_owned()).collect();
    let mut mutator = Mutator::new(seeds.clone(), 1);
    let made = (0..INPUTS).map(|_| mutator.text());
    seeds.iter().cloned().chain(made).for_each(|text| run(&text));
}

/// A word of an option file that reads as this word: each letter between quotation marks that it is
/// not.
fn quoted(word: &str) -> String {
    let letter = |letter: char| {
        if letter == '"' {
            "'\"'".to_owned()
        } else {
            format!("\"{letter}\"")
        }
    };
    if word.is_empty() {
        "\"\"".to_owned()
    } else {
        word.chars().map(letter).collect()
    }
}

#[test]
fn words_of_option_files_are_found_again_when_they_are_quoted() {
    let seeds = [
        "-N \"a b\" -l 'h_rt=1:0:0'\\ x",
        "# comment\n-cwd\r\n-v A=\"b\\\"c\"",
        "'open",
        "\\",
        "-@ file \"\" x",
    ];
    each(&seeds, |text| {
        for word in sources::line_words(text) {
            // A line break stands in no word of a file, and a carriage return at the end of a line
            // belongs to the line.
            if !word.contains('\n') {
                assert_eq!(
                    sources::line_words(&format!("{} end", quoted(&word))),
                    [word.as_str(), "end"],
                    "{text:?}"
                );
            }
        }
    });
}

#[test]
fn directives_of_any_script_are_read_or_refused_with_their_line() {
    let seeds = [
        "#!/bin/sh\n#$ -N name -l h_rt=10\n#$-cwd\r\necho\n",
        "#$ -t 1-10:2 -hold_jid 1,2\n#$ -pe smp 1-4 -q 'a*'\n",
        "#$ -nosuch\n#$ -N\n",
        "#$",
    ];
    each(&seeds, |text| {
        for prefix in ["#$", "", "#", "\n"] {
            if let Err(fail) = sources::directives(text.as_bytes(), prefix, "job.sh") {
                assert!(format!("{fail:?}").contains("job.sh line "), "{fail:?}");
            }
        }
    });
}
