//! Limits the log lines about refused connections: a peer can connect many thousand times a second.

/// The time in which so many lines are written at most.
const WINDOW_MS: u64 = 60_000;

/// The most lines in one such time.
const LINES: u32 = 5;

/// Counts refusals.
#[derive(Debug, Default)]
pub struct Refusals {
    began_ms: Option<u64>,
    lines: u32,
    suppressed: u64,
}

impl Refusals {
    /// Returns the lines to log about a refusal at `now` (boot milliseconds). The list is empty
    /// beyond the limit. Later the first line says how many were left out.
    pub fn note(&mut self, now: u64, text: &str) -> Vec<String> {
        let mut lines = Vec::new();
        if self.began_ms.is_none_or(|began| now.saturating_sub(began) >= WINDOW_MS) {
            if self.suppressed > 0 {
                lines.push(format!("{} more connections were refused before", self.suppressed));
            }
            *self = Refusals {
                began_ms: Some(now),
                ..Refusals::default()
            };
        }
        if self.lines < LINES {
            self.lines += 1;
            let last = if self.lines == LINES {
                "; further ones of this minute are only counted"
            } else {
                ""
            };
            lines.push(format!("{text}{last}"));
        } else {
            self.suppressed += 1;
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_refusals_costs_a_few_lines_and_is_counted() {
        let mut refusals = Refusals::default();
        let lines: Vec<String> = (0..30_000).flat_map(|now| refusals.note(now, "refused")).collect();
        assert_eq!(lines.len(), LINES as usize);
        assert!(lines[4].contains("only counted"), "{}", lines[4]);
        assert_eq!(
            refusals.note(60_000, "refused"),
            ["29995 more connections were refused before", "refused"]
        );
        assert_eq!(refusals.note(60_001, "refused"), ["refused"]);
    }
}
