//! Expressions of patterns that requests for text attributes are made of: `lx*&!*-x86`, `(abc|xyz)`
//! (ALGORITHMS.md section 7).
//!
//! The same language stands in `-q`, `-masterq`, `-hold_jid` and quota filters. Names of jobs and
//! user lists of commands have wildcards alone ([`Wildcards`]). Host names are compared as text
//! here: aliases and domains are resolved by whoever knows the cell.

mod pattern;
#[cfg(test)]
mod tests;

use crate::amount::Type;
use pattern::Pattern;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Expressions and values of so many bytes or more match nothing.
pub const LENGTH_LIMIT_BYTES: usize = 2048;

/// Parentheses inside parentheses; deeper ones are refused, because parsing and evaluation recurse.
const DEPTH_MAX: usize = 100;

/// The characters without which an expression is a plain text.
const SPECIAL: [char; 9] = ['*', '?', '[', ']', '!', '&', '|', '(', ')'];

/// What is wrong with an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpressionFault {
    /// An operand is missing, or something is left over.
    Syntax,
    /// The expression has [`LENGTH_LIMIT_BYTES`] or more.
    TooLong,
    /// There are too many parentheses inside each other.
    TooDeep,
}

/// A text that is no expression, in the words of 8.1.9.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Parse error on position {position} of the expression \"{expression}\".")]
pub struct ParseError {
    /// The whole text.
    pub expression: String,
    /// The character where it stops making sense, counted from 1; the last one where the end came
    /// too early.
    pub position: usize,
    /// What is wrong there.
    pub fault: ExpressionFault,
}

/// A parsed expression. Stored and printed as the text it was made from.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Expression {
    text: String,
    root: ExpressionNode,
}

/// An expression as a tree.
#[derive(Clone)]
enum ExpressionNode {
    Pattern(Pattern),
    Not(Box<ExpressionNode>),
    All(Vec<ExpressionNode>),
    Any(Vec<ExpressionNode>),
}

impl Expression {
    /// Reads an expression: `!` binds tightest, then `&`, then `|`; parentheses group.
    ///
    /// A text without any of `* ? [ ] ! & | ( )` is one plain value, blanks and backslashes
    /// included. Otherwise blanks separate, and the operators count everywhere, also between
    /// brackets: `[a|b]` is `[a` or `b]`.
    ///
    /// # Errors
    /// If an operand is missing, something is left over, or the expression is too long or too deep.
    pub fn parse(text: &str) -> Result<Expression, ParseError> {
        let error = |position, fault| ParseError {
            expression: text.to_owned(),
            position,
            fault,
        };
        if text.len() >= LENGTH_LIMIT_BYTES {
            return Err(error(text.chars().count(), ExpressionFault::TooLong));
        }
        let root = if text.contains(SPECIAL) {
            let mut parser = Parser { rest: text, depth: 0 };
            let end = parser.any().and_then(|node| parser.end().map(|()| node));
            end.map_err(|fault| error(position(text, parser.rest), fault))?
        } else {
            ExpressionNode::Pattern(Pattern::plain(text))
        };
        Ok(Expression {
            text: text.to_owned(),
            root,
        })
    }

    /// Whether the offered value matches. Case does not count for CSTRING and HOST.
    ///
    /// A value of [`LENGTH_LIMIT_BYTES`] or more matches nothing. The work is at most the product
    /// of both lengths.
    pub fn matches(&self, offered: &str, r#type: Type) -> bool {
        if offered.len() >= LENGTH_LIMIT_BYTES {
            return false;
        }
        match case_of(r#type) {
            Case::Counts => self.root.matches(&chars(offered), Case::Counts),
            Case::Folded => self.root.matches(&chars(&offered.to_lowercase()), Case::Folded),
        }
    }

    /// The expression as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text if it has none of `* ? [ ] ! & | ( )`, so that it names one value.
    pub fn plain(&self) -> Option<&str> {
        (!self.text.contains(SPECIAL)).then_some(&*self.text)
    }
}

/// A name, or a pattern with the wildcards `*`, `?` and `[…]` of fnmatch(3): what user lists and
/// names of jobs are given as.
///
/// It has no operators. `! & | ( )` stand for themselves, so that `qdel -u '!me'` means nobody and
/// not everybody else.
#[derive(Clone)]
pub struct Wildcards(Pattern);

impl Wildcards {
    /// Reads a name or pattern; every text is one.
    pub fn new(text: &str) -> Wildcards {
        Wildcards(Pattern::parse(text))
    }

    /// Whether a name matches. A name of [`LENGTH_LIMIT_BYTES`] or more matches nothing.
    pub fn matches(&self, name: &str) -> bool {
        name.len() < LENGTH_LIMIT_BYTES && self.0.matches(&chars(name), Case::Counts)
    }
}

/// Whether upper and lower case differ.
#[derive(Clone, Copy)]
enum Case {
    Counts,
    Folded,
}

fn case_of(r#type: Type) -> Case {
    match r#type {
        Type::CString | Type::Host => Case::Folded,
        Type::String
        | Type::ReString
        | Type::Int
        | Type::Double
        | Type::Time
        | Type::Memory
        | Type::Bool
        | Type::RsMap => Case::Counts,
    }
}

fn chars(text: &str) -> Vec<char> {
    text.chars().collect()
}

/// The position in `text` where `rest` begins, counted in characters from 1 and never beyond the
/// last.
fn position(text: &str, rest: &str) -> usize {
    let before = text[..text.len() - rest.len()].chars().count();
    (before + 1).min(text.chars().count())
}

impl ExpressionNode {
    fn matches(&self, offered: &[char], case: Case) -> bool {
        match self {
            ExpressionNode::Pattern(pattern) => pattern.matches(offered, case),
            ExpressionNode::Not(inner) => !inner.matches(offered, case),
            ExpressionNode::All(nodes) => nodes.iter().all(|node| node.matches(offered, case)),
            ExpressionNode::Any(nodes) => nodes.iter().any(|node| node.matches(offered, case)),
        }
    }
}

/// Reads the grammar of ALGORITHMS.md section 7 by recursive descent; `rest` stays where an error
/// is.
struct Parser<'a> {
    rest: &'a str,
    depth: usize,
}

impl Parser<'_> {
    /// `all ( '|' all )*`
    fn any(&mut self) -> Result<ExpressionNode, ExpressionFault> {
        let mut nodes = vec![self.all()?];
        while self.takes('|') {
            nodes.push(self.all()?);
        }
        Ok(if nodes.len() == 1 {
            nodes.remove(0)
        } else {
            ExpressionNode::Any(nodes)
        })
    }

    /// `unary ( '&' unary )*`
    fn all(&mut self) -> Result<ExpressionNode, ExpressionFault> {
        let mut nodes = vec![self.unary()?];
        while self.takes('&') {
            nodes.push(self.unary()?);
        }
        Ok(if nodes.len() == 1 {
            nodes.remove(0)
        } else {
            ExpressionNode::All(nodes)
        })
    }

    /// `'!'* ( '(' any ')' | pattern )`
    fn unary(&mut self) -> Result<ExpressionNode, ExpressionFault> {
        let mut negated = false;
        while self.takes('!') {
            negated = !negated;
        }
        let node = if self.takes('(') {
            self.group()?
        } else {
            self.pattern()?
        };
        Ok(if negated {
            ExpressionNode::Not(Box::new(node))
        } else {
            node
        })
    }

    /// What follows an opening parenthesis, and the closing one.
    fn group(&mut self) -> Result<ExpressionNode, ExpressionFault> {
        if self.depth == DEPTH_MAX {
            return Err(ExpressionFault::TooDeep);
        }
        self.depth += 1;
        let node = self.any()?;
        self.depth -= 1;
        if self.takes(')') {
            Ok(node)
        } else {
            Err(ExpressionFault::Syntax)
        }
    }

    /// Characters up to a blank or an operator.
    fn pattern(&mut self) -> Result<ExpressionNode, ExpressionFault> {
        let ends = |c: char| c.is_ascii_whitespace() || matches!(c, '!' | '&' | '|' | '(' | ')');
        let length = self.rest.find(ends).unwrap_or(self.rest.len());
        if length == 0 {
            return Err(ExpressionFault::Syntax);
        }
        let (text, rest) = self.rest.split_at(length);
        self.rest = rest;
        Ok(ExpressionNode::Pattern(Pattern::parse(text)))
    }

    /// Skips blanks and then the operator, if it is next.
    fn takes(&mut self, operator: char) -> bool {
        self.rest = self.rest.trim_ascii_start();
        let after = self.rest.strip_prefix(operator);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn end(&mut self) -> Result<(), ExpressionFault> {
        self.rest = self.rest.trim_ascii_start();
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(ExpressionFault::Syntax)
        }
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Expression) -> bool {
        self.text == other.text
    }
}

impl Eq for Expression {}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl TryFrom<String> for Expression {
    type Error = ParseError;

    fn try_from(text: String) -> Result<Expression, ParseError> {
        Expression::parse(&text)
    }
}

impl From<Expression> for String {
    fn from(expression: Expression) -> String {
        expression.text
    }
}
