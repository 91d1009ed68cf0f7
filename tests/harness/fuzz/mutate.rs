//! Texts that are nearly right, from texts that are: the same seed gives the same texts on every
//! machine.

/// The longest text that is made, in bytes.
const LONGEST: usize = 16_384;

/// What may stand where a piece of a text stood.
const PIECES: [&str; 24] = [
    "\0",
    "\n",
    "\r\n",
    "\\\n",
    " ",
    "\t",
    ",",
    "=",
    "[",
    "]",
    "@",
    "!",
    "|",
    "&",
    "(",
    ")",
    "*",
    ":",
    "-",
    "\"",
    "'",
    "é",
    "NONE",
    "99999999999999999999",
];

/// A stream of texts made from some others.
pub struct Mutator {
    seeds: Vec<String>,
    state: u64,
}

impl Mutator {
    /// Texts made from `seeds`, of which there is at least one.
    pub fn new(seeds: Vec<String>, seed: u64) -> Self {
        assert!(!seeds.is_empty(), "texts are made from texts");
        Self { seeds, state: seed }
    }

    /// The next text.
    pub fn text(&mut self) -> String {
        let mut text = self.seed();
        for _ in 0..=self.below(6) {
            text = self.changed(text);
        }
        let end = (0..=text.len().min(LONGEST))
            .rev()
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(0);
        text.truncate(end);
        text
    }

    fn changed(&mut self, text: String) -> String {
        let (from, to) = self.span(&text);
        let piece = match self.below(6) {
            // A part is left out, doubled, or replaced.
            0 => String::new(),
            1 => text[from..to].repeat(2),
            2 => {
                let other = self.seed();
                let (from, to) = self.span(&other);
                other[from..to].to_owned()
            }
            3 => char::from_u32(self.below(0x250) as u32)
                .map(String::from)
                .unwrap_or_default(),
            4 => self.below(u64::MAX).to_string(),
            _ => PIECES[self.below(PIECES.len() as u64) as usize].to_owned(),
        };
        // Half of the time it is put between what was there.
        let rest = if self.below(2) == 0 { from } else { to };
        format!("{}{piece}{}", &text[..from], &text[rest..])
    }

    /// A short part of a text, between characters.
    fn span(&mut self, text: &str) -> (usize, usize) {
        let whole = |mut at: usize| {
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let from = self.below(text.len() as u64 + 1) as usize;
        let to = (from + self.below(20) as usize).min(text.len());
        (whole(from), whole(to))
    }

    fn seed(&mut self) -> String {
        let at = self.below(self.seeds.len() as u64) as usize;
        self.seeds[at].clone()
    }

    /// A number below `bound`, by splitmix64.
    fn below(&mut self, bound: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}
