//! Control characters in what is printed for people: they would move the cursor, colour the screen,
//! or begin a line that seems to be ours. They are shown as Rust writes them in a literal: `\n`,
//! `\u{1b}`.

use std::borrow::Cow;

/// Whether a terminal does something with a character instead of showing it: C0, DEL, C1, and what
/// changes the direction of text or ends a line in Unicode.
pub fn is_control(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A value, such as a name or a path, on one line and without effect on a terminal.
pub fn value(text: &str) -> Cow<'_, str> {
    escape(text, is_control)
}

/// A whole text: the line breaks and tabulators in it are its form.
pub fn text(text: &str) -> Cow<'_, str> {
    escape(text, |character| {
        is_control(character) && !matches!(character, '\n' | '\t')
    })
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    // Nearly every text has none, and is not copied.
    if !text.chars().any(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match is_escaped(character) {
            true => escaped.extend(character.escape_default()),
            false => escaped.push(character),
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_a_cursor_is_shown_and_all_else_stays() {
        for (given, as_value, as_text) in [
            ("plain", "plain", "plain"),
            ("Grüße 日本 \\n", "Grüße 日本 \\n", "Grüße 日本 \\n"),
            ("\x1b[31mEVIL\x07", "\\u{1b}[31mEVIL\\u{7}", "\\u{1b}[31mEVIL\\u{7}"),
            ("a\nb\tc\rd", "a\\nb\\tc\\rd", "a\nb\tc\\rd"),
            ("\u{7f}\u{9b}2J\0", "\\u{7f}\\u{9b}2J\\u{0}", "\\u{7f}\\u{9b}2J\\u{0}"),
            ("gnp.\u{202e}exe", "gnp.\\u{202e}exe", "gnp.\\u{202e}exe"),
        ] {
            assert_eq!(
                (value(given).as_ref(), text(given).as_ref()),
                (as_value, as_text),
                "{given:?}"
            );
        }
    }
}
