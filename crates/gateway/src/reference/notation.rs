//! The notation in which the table writes types: a small part of TypeScript's. Pure.
//!
//! ```text
//! type    = one { "|" one }
//! one     = ( word | "literal" | digits | Name | "{" members "}" | "(" type ")" ) { "[]" }
//! members = [ member { "," member } ]
//! member  = "..." Name | name [ "?" ] ":" type
//! word    = string | number | integer | boolean | null | true | false | object | unknown
//! ```

use std::fmt;

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// One of those that JSON has.
    Word(Word),
    /// Exactly this text.
    Literal(String),
    /// Exactly this number.
    Exactly(u32),
    /// The shape with this name.
    Named(String),
    /// A list.
    List(Box<Type>),
    /// One of these.
    OneOf(Vec<Type>),
    /// An object.
    Members(Vec<Part>),
}

/// The types that need no description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// A text.
    String,
    /// Any number.
    Number,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// `null`.
    Null,
    /// `true`.
    True,
    /// `false`.
    False,
    /// Any object.
    Object,
    /// Anything.
    Unknown,
}

/// A part of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All members of the shape with this name.
    AllOf(String),
    /// One member.
    Member(Member),
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// Its name.
    pub(super) name: String,
    /// Whether it may be absent.
    pub(super) optional: bool,
    /// Its type.
    pub(super) of: Type,
}

const WORDS: [(&str, Word); 9] = [
    ("string", Word::String),
    ("number", Word::Number),
    ("integer", Word::Integer),
    ("boolean", Word::Boolean),
    ("null", Word::Null),
    ("true", Word::True),
    ("false", Word::False),
    ("object", Word::Object),
    ("unknown", Word::Unknown),
];

/// A row of the table that says nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}`: {expected} expected at character {at}")]
pub struct BadNotation {
    text: String,
    at: usize,
    expected: &'static str,
}

impl BadNotation {
    /// A shape that is not there, or is not an object where one is needed.
    pub(super) fn no_shape(name: &str) -> Self {
        Self { text: name.to_owned(), at: 0, expected: "the name of a shape" }
    }
}

/// Reads a type.
pub(super) fn parse(text: &str) -> Result<Type, BadNotation> {
    let mut reader = Reader { text, rest: text };
    let found = reader.one_of()?;
    if reader.peek().is_none() { Ok(found) } else { Err(reader.expected("the end")) }
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn takes(&mut self, wanted: &str) -> bool {
        self.peek();
        let rest = self.rest.strip_prefix(wanted);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expected(&self, expected: &'static str) -> BadNotation {
        BadNotation { text: self.text.to_owned(), at: self.text.len() - self.rest.len(), expected }
    }

    fn name(&mut self) -> Option<&'a str> {
        self.peek();
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(name).filter(|name| !name.is_empty())
    }

    fn one_of(&mut self) -> Result<Type, BadNotation> {
        let mut found = vec![self.one()?];
        while self.takes("|") {
            found.push(self.one()?);
        }
        Ok(if found.len() == 1 { found.remove(0) } else { Type::OneOf(found) })
    }

    fn one(&mut self) -> Result<Type, BadNotation> {
        let mut found = if self.takes("{") {
            self.members()?
        } else if self.takes("(") {
            let within = self.one_of()?;
            self.must(")", "`)`")?;
            within
        } else if self.takes("\"") {
            let (literal, rest) = self.rest.split_once('"').ok_or_else(|| self.expected("a `\"`"))?;
            self.rest = rest;
            Type::Literal(literal.to_owned())
        } else {
            let name = self.name().ok_or_else(|| self.expected("a type"))?;
            match WORDS.iter().find(|(word, _)| *word == name) {
                Some((_, word)) => Type::Word(*word),
                None if let Ok(number) = name.parse() => Type::Exactly(number),
                None if name.starts_with(|c: char| c.is_ascii_uppercase()) => Type::Named(name.to_owned()),
                None => return Err(self.expected("a type before this")),
            }
        };
        while self.takes("[]") {
            found = Type::List(Box::new(found));
        }
        Ok(found)
    }

    fn members(&mut self) -> Result<Type, BadNotation> {
        let mut parts = Vec::new();
        loop {
            if self.takes("}") {
                return Ok(Type::Members(parts));
            }
            if !parts.is_empty() {
                self.must(",", "`,` or `}`")?;
            }
            parts.push(self.part()?);
        }
    }

    fn part(&mut self) -> Result<Part, BadNotation> {
        if self.takes("...") {
            let name = self.name().ok_or_else(|| self.expected("the name of a shape"))?;
            return Ok(Part::AllOf(name.to_owned()));
        }
        let name = self.name().ok_or_else(|| self.expected("the name of a member"))?.to_owned();
        let optional = self.takes("?");
        self.must(":", "`:`")?;
        Ok(Part::Member(Member { name, optional, of: self.one_of()? }))
    }

    fn must(&mut self, wanted: &str, expected: &'static str) -> Result<(), BadNotation> {
        if self.takes(wanted) { Ok(()) } else { Err(self.expected(expected)) }
    }
}

impl fmt::Display for Type {
    /// As TypeScript has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(Word::Integer) => f.write_str("number"),
            Self::Word(Word::Object) => f.write_str("{ readonly [member: string]: unknown }"),
            Self::Word(word) => f.write_str(word.name()),
            Self::Literal(text) => write!(f, "\"{text}\""),
            Self::Exactly(number) => write!(f, "{number}"),
            Self::Named(name) => f.write_str(name),
            Self::List(of) if matches!(**of, Self::OneOf(_) | Self::List(_)) => write!(f, "readonly ({of})[]"),
            Self::List(of) => write!(f, "readonly {of}[]"),
            Self::OneOf(all) => {
                let all: Vec<String> = all.iter().map(|one| format!("{one}")).collect();
                f.write_str(&all.join(" | "))
            }
            Self::Members(parts) if parts.is_empty() => f.write_str("{ readonly [member: string]: never }"),
            Self::Members(parts) => {
                let own: Vec<String> =
                    parts.iter().filter_map(Part::member).map(|member| format!("{member}")).collect();
                let shapes = parts.iter().filter_map(Part::shape).map(str::to_owned);
                let own = Some(own).filter(|own| !own.is_empty()).map(|own| format!("{{ {} }}", own.join("; ")));
                f.write_str(&shapes.chain(own).collect::<Vec<_>>().join(" & "))
            }
        }
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.optional { "?" } else { "" };
        write!(f, "readonly {}{mark}: {}", self.name, self.of)
    }
}

impl Part {
    pub(super) fn member(&self) -> Option<&Member> {
        match self {
            Self::Member(member) => Some(member),
            Self::AllOf(_) => None,
        }
    }

    pub(super) fn shape(&self) -> Option<&str> {
        match self {
            Self::Member(_) => None,
            Self::AllOf(name) => Some(name),
        }
    }
}

impl Word {
    pub(super) fn name(self) -> &'static str {
        WORDS.iter().find(|(_, word)| *word == self).map_or("unknown", |(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_written_is_what_typescript_has() {
        let check = |text: &str, expected: &str| assert_eq!(parse(text).unwrap().to_string(), expected, "{text}");
        check("string", "string");
        check("integer | null", "number | null");
        check("\"on\"|\"off\"", "\"on\" | \"off\"");
        check("{ protocol: 3 }", "{ readonly protocol: 3 }");
        check("(string | null)[]", "readonly (string | null)[]");
        check("{}", "{ readonly [member: string]: never }");
        check("object", "{ readonly [member: string]: unknown }");
        check("{ ok: true, a?: Hook[] }", "{ readonly ok: true; readonly a?: readonly Hook[] }");
        check("{ ...Execution, errorDetail: string }", "Execution & { readonly errorDetail: string }");
    }

    #[test]
    fn what_is_wrong_is_shown_with_its_place() {
        let check = |text: &str, at: usize, expected: &'static str| {
            assert_eq!(parse(text), Err(BadNotation { text: text.into(), at, expected }), "{text}");
        };
        check("", 0, "a type");
        check("strin", 5, "a type before this");
        check("{ a string }", 4, "`:`");
        check("{ a: string b: string }", 12, "`,` or `}`");
        check("{ a: string", 11, "`,` or `}`");
        check("string string", 7, "the end");
        check("\"on", 1, "a `\"`");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,60}") {
            drop(parse(&text));
        }

        #[test]
        fn no_text_of_its_own_signs_makes_it_panic(text in "[a-zA{}\\[\\]()|?:,\". ]{0,40}") {
            drop(parse(&text));
        }
    }
}
