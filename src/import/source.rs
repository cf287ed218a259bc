//! Another tool's changelog as values, free of any driver's types.

/// Another tool's changelog.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// Its collection.
    pub collection: String,
    /// All that is in it.
    pub documents: Vec<SourceDocument>,
}

/// One document, as far as the tools' formats need it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SourceDocument {
    /// Its fields, `_id` included.
    pub fields: Vec<(String, Value)>,
}

/// A value in one of the types that the tools write.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A text.
    Text {
        /// The text.
        text: String,
        /// The instant that it spells in RFC 3339, ms since 1970: `mongoimport` leaves such dates.
        instant: Option<i64>,
    },
    /// A date, ms since 1970.
    Instant(i64),
    /// A whole number; fractions are rounded.
    Number(i64),
    /// An ObjectId: its hex digits, and the instant that its maker has put into it.
    ObjectId {
        /// The digits.
        hex: String,
        /// When it was made, ms since 1970, to the second.
        made_at: i64,
    },
    /// Null.
    Null,
    /// Anything else; says what.
    Other(&'static str),
}

impl SourceDocument {
    /// Is the field there, whatever its value?
    pub fn has(&self, field: &str) -> bool {
        self.field(field).is_some()
    }

    /// The text of a field.
    pub fn text(&self, field: &str) -> Option<&str> {
        match self.field(field)? {
            Value::Text { text, .. } => Some(text),
            _ => None,
        }
    }

    /// The whole number of a field.
    pub fn number(&self, field: &str) -> Option<i64> {
        match self.field(field)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The instant of a field: a date, a text that spells one, or milliseconds since 1970.
    ///
    /// What lies before [`EARLIEST`] is a mistake: a null that became 1970, or seconds taken for
    /// milliseconds.
    pub fn instant(&self, field: &str) -> Option<i64> {
        let instant = match self.field(field)? {
            Value::Instant(ms) | Value::Number(ms) => Some(*ms),
            Value::Text { instant, .. } => *instant,
            Value::ObjectId { .. } | Value::Null | Value::Other(_) => None,
        };
        instant.filter(|ms| *ms >= EARLIEST)
    }

    /// When the document was made, as its ObjectId says.
    pub fn made_at(&self) -> Option<i64> {
        match self.field("_id")? {
            Value::ObjectId { made_at, .. } => Some(*made_at),
            _ => None,
        }
    }

    /// What a person finds it by.
    pub fn id(&self) -> String {
        self.field("_id").map_or_else(|| "without an _id".to_owned(), Value::shown)
    }

    /// A field's value as a person would write it.
    pub fn shown(&self, field: &str) -> String {
        self.field(field).map_or_else(|| "missing".to_owned(), Value::shown)
    }

    fn field(&self, name: &str) -> Option<&Value> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value)
    }
}

impl Value {
    fn shown(&self) -> String {
        match self {
            Self::Text { text, .. } => format!("\"{}\"", text.escape_debug()),
            Self::Instant(ms) => format!("a date {ms} ms after 1970"),
            Self::Number(number) => number.to_string(),
            Self::ObjectId { hex, .. } => hex.clone(),
            Self::Null => "null".to_owned(),
            Self::Other(kind) => (*kind).to_owned(),
        }
    }
}

/// 2000-01-01: neither MongoDB nor any of the tools is that old.
pub const EARLIEST: i64 = 946_684_800_000;
