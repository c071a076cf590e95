//! The query language: from text to a tree.
//!
//! ```text
//! query   = clause { ["OR"] clause }
//! clause  = part { "AND" part }                  AND binds closer than OR
//! part    = { "NOT" } ["+" | "-"] ( word | phrase | "(" query ")" )
//! word    = text [ "*" | "~" | "~1" | "~2" ]     beginning with, or within an edit distance
//! phrase  = '"' text '"'
//! ```
//! What is a word's end: white space, a parenthesis, or a quotation mark. `+`, `-`, `AND`, `OR` and `NOT` mean something
//! only where they stand apart from the word before them.

use crate::error::QueryError;

/// Most words, phrases and groups.
const MAX_PARTS: usize = 512;
/// Most parentheses within each other.
const MAX_DEPTH: usize = 32;

/// A query that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    pub(crate) root: Node,
}

/// A part of a query.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    /// A word; where the tokenizer finds several in it, the phrase of them.
    Word(String),
    /// Words that begin so.
    Prefix(String),
    /// Words within an edit distance.
    Fuzzy(String, u8),
    /// Words that stand beside each other.
    Phrase(String),
    /// Parts that must be there, that may be, of which one must be if none of the first kind is given, and that must
    /// not be.
    Group {
        must: Vec<Node>,
        any: Vec<Node>,
        not: Vec<Node>,
    },
}

impl Query {
    /// Reads a query.
    ///
    /// # Errors
    /// If it has no word, or its operators don't fit together.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        let mut parser = Parser {
            items: lex(text)?,
            at: 0,
        };
        let root = parser.group(0, None)?;
        Ok(Query {
            root: root.ok_or(QueryError::Empty)?,
        })
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Item {
    And,
    Or,
    Not,
    Open(Sign),
    Close,
    Leaf(Sign, Node),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Sign {
    May,
    Must,
    Not,
}

/// The items of a query with their places.
fn lex(text: &str) -> Result<Vec<(Item, usize)>, QueryError> {
    let chars: Vec<char> = text.chars().collect();
    let mut items = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let place = at + 1;
        if chars[at].is_whitespace() {
            at += 1;
            continue;
        }
        let sign = match (chars[at], chars.get(at + 1)) {
            ('+', Some(next)) if !next.is_whitespace() => Sign::Must,
            ('-', Some(next)) if !next.is_whitespace() => Sign::Not,
            _ => Sign::May,
        };
        at += usize::from(sign != Sign::May);
        let item = match chars[at] {
            '(' => {
                at += 1;
                Some(Item::Open(sign))
            }
            ')' => {
                at += 1;
                Some(Item::Close)
            }
            '"' => {
                let rest = &chars[at + 1..];
                let Some(len) = rest.iter().position(|c| *c == '"') else {
                    let (what, at) = ('"', at + 1);
                    return Err(QueryError::Unpaired { what, at });
                };
                at += len + 2;
                let phrase: String = rest[..len].iter().collect();
                has_word(&phrase).then_some(Item::Leaf(sign, Node::Phrase(phrase)))
            }
            _ => {
                let is_end = |c: &char| c.is_whitespace() || ['(', ')', '"'].contains(c);
                let len = chars[at..].iter().position(is_end);
                let len = len.unwrap_or(chars.len() - at);
                let word: String = chars[at..at + len].iter().collect();
                at += len;
                word_item(&word, sign, place)?
            }
        };
        items.extend(item.map(|item| (item, place)));
        if items.len() > 4 * MAX_PARTS {
            return Err(QueryError::TooLong { limit: MAX_PARTS });
        }
    }
    let is_part = |item: &&(Item, usize)| matches!(item.0, Item::Leaf(..) | Item::Open(_));
    if items.iter().filter(is_part).count() > MAX_PARTS {
        return Err(QueryError::TooLong { limit: MAX_PARTS });
    }
    Ok(items)
}

fn has_word(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}

fn word_item(word: &str, sign: Sign, at: usize) -> Result<Option<Item>, QueryError> {
    let operator = match word {
        "AND" => Some(Item::And),
        "OR" => Some(Item::Or),
        "NOT" => Some(Item::Not),
        _ => None,
    };
    if sign == Sign::May && operator.is_some() {
        return Ok(operator);
    }
    let node = if let Some(prefix) = word.strip_suffix('*') {
        Node::Prefix(prefix.to_owned())
    } else if let Some((stem, distance)) = word.rsplit_once('~') {
        match distance {
            "" | "1" => Node::Fuzzy(stem.to_owned(), 1),
            "2" => Node::Fuzzy(stem.to_owned(), 2),
            other if has_word(stem) && other.chars().all(|c| c.is_ascii_digit()) => {
                return Err(QueryError::BadDistance { at });
            }
            _ => Node::Word(word.to_owned()),
        }
    } else {
        Node::Word(word.to_owned())
    };
    let (Node::Word(text) | Node::Prefix(text) | Node::Fuzzy(text, _)) = &node else {
        return Ok(None);
    };
    // What is no word to any tokenizer, such as a lonely dash, is not a part of the query.
    Ok(has_word(text).then_some(Item::Leaf(sign, node)))
}

struct Parser {
    items: Vec<(Item, usize)>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> Option<&(Item, usize)> {
        self.items.get(self.at)
    }

    /// A group up to its closing parenthesis, or to the end of the query; `None` for one without parts.
    fn group(&mut self, depth: usize, open: Option<usize>) -> Result<Option<Node>, QueryError> {
        let (mut must, mut any, mut not) = (Vec::new(), Vec::new(), Vec::new());
        let begin = self.peek().map_or(1, |(_, at)| *at);
        let mut or = None;
        loop {
            match self.peek() {
                None => match open {
                    Some(at) => return Err(QueryError::Unpaired { what: '(', at }),
                    None => break,
                },
                Some((Item::Close, at)) => {
                    let at = *at;
                    if open.is_none() {
                        return Err(QueryError::Unpaired { what: ')', at });
                    }
                    self.at += 1;
                    break;
                }
                Some((Item::Or, at)) => {
                    let at = *at;
                    let nothing_before = must.is_empty() && any.is_empty() && not.is_empty();
                    if nothing_before || or.is_some() {
                        return Err(QueryError::Dangling { what: "OR", at });
                    }
                    or = Some(at);
                    self.at += 1;
                }
                Some(_) => {
                    or = None;
                    match self.clause(depth)? {
                        Some((Sign::Must, node)) => must.push(node),
                        Some((Sign::May, node)) => any.push(node),
                        Some((Sign::Not, node)) => not.push(node),
                        None => {}
                    }
                }
            }
        }
        if let Some(at) = or {
            return Err(QueryError::Dangling { what: "OR", at });
        }
        group_of(must, any, not, begin)
    }

    /// Parts joined by AND.
    fn clause(&mut self, depth: usize) -> Result<Option<(Sign, Node)>, QueryError> {
        let begin = self.peek().map_or(1, |(_, at)| *at);
        let mut parts = Vec::new();
        loop {
            parts.extend(self.part(depth)?);
            match self.peek() {
                Some((Item::And, _)) => self.at += 1,
                _ => break,
            }
        }
        if parts.len() < 2 {
            return Ok(parts.pop());
        }
        let (not, must): (Vec<_>, Vec<_>) =
            parts.into_iter().partition(|(sign, _)| *sign == Sign::Not);
        let nodes = |parts: Vec<(Sign, Node)>| parts.into_iter().map(|(_, node)| node).collect();
        let node = group_of(nodes(must), Vec::new(), nodes(not), begin)?;
        Ok(node.map(|node| (Sign::May, node)))
    }

    fn part(&mut self, depth: usize) -> Result<Option<(Sign, Node)>, QueryError> {
        let mut before = self.at.checked_sub(1).map_or(("", 1), |at| {
            let (item, place) = &self.items[at];
            let name = if *item == Item::And { "AND" } else { "" };
            (name, *place)
        });
        let mut negated = false;
        while let Some((Item::Not, at)) = self.peek() {
            before = ("NOT", *at);
            negated = !negated;
            self.at += 1;
        }
        let item = self.peek().cloned();
        let (sign, node) = match item {
            Some((Item::Leaf(sign, node), _)) => {
                self.at += 1;
                (sign, Some(node))
            }
            Some((Item::Open(sign), at)) => {
                if depth == MAX_DEPTH {
                    let limit = MAX_DEPTH;
                    return Err(QueryError::TooDeep { at, limit });
                }
                self.at += 1;
                (sign, self.group(depth + 1, Some(at))?)
            }
            other => {
                let (what, at) = match (before, other) {
                    (("", _), Some((_, at))) => ("AND", at),
                    (before, _) => before,
                };
                return Err(QueryError::Dangling { what, at });
            }
        };
        let sign = match (negated, sign) {
            (false, sign) => sign,
            (true, Sign::Not) => Sign::May,
            (true, _) => Sign::Not,
        };
        Ok(node.map(|node| (sign, node)))
    }
}

/// A group, or its only part.
fn group_of(
    mut must: Vec<Node>,
    mut any: Vec<Node>,
    not: Vec<Node>,
    at: usize,
) -> Result<Option<Node>, QueryError> {
    match (must.len(), any.len(), not.len()) {
        (0, 0, 0) => Ok(None),
        (0, 0, _) => Err(QueryError::OnlyExcludes { at }),
        (1, 0, 0) => Ok(must.pop()),
        (0, 1, 0) => Ok(any.pop()),
        _ => Ok(Some(Node::Group { must, any, not })),
    }
}
