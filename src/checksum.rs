//! Checksums of migration files: SHA-256 of the bytes, blind to line ends and a byte order mark.
//!
//! What is stored is the plain SHA-256 of the bytes as they are, in lower-case hex: the form that
//! mongo-migrate-kit 1.x and migrate-mongo store too. A stored checksum *matches* when it equals the
//! SHA-256 of the bytes as they are, or with LF or CRLF line ends, each with or without a byte order
//! mark: Git's `autocrlf` and editors change those without anyone editing a migration. A lone CR is
//! content. 1.x hashed the text after decoding it as UTF-8, so for files that are no valid UTF-8 the
//! decoded form counts as well.

use std::sync::Arc;

use sha2::{Digest, Sha256};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
const HEX: &[u8; 16] = b"0123456789abcdef";

/// The content of one file, as far as comparing checksums needs it.
#[derive(Debug, Clone)]
pub struct FileChecksum {
    stored: String,
    bytes: Arc<[u8]>,
}

impl FileChecksum {
    /// Hashes the bytes of a file.
    pub fn of(bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        Self { stored: sha256_hex(&bytes), bytes }
    }

    /// The form to store: lower-case hex of the SHA-256 of the bytes as they are.
    pub fn as_str(&self) -> &str {
        &self.stored
    }

    /// Is `stored` a checksum of this content, line ends and byte order mark aside?
    pub fn matches(&self, stored: &str) -> bool {
        self.stored.eq_ignore_ascii_case(stored) || self.matches_variant(stored)
    }

    /// The rarer forms are hashed only when the plain one differs.
    fn matches_variant(&self, stored: &str) -> bool {
        let decoded = String::from_utf8_lossy(&self.bytes);
        let text = self.bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.bytes);
        let unix = to_unix_line_ends(text);
        let dos = to_dos_line_ends(&unix);
        let marked = |body: &[u8]| [BYTE_ORDER_MARK, body].concat();
        [decoded.as_bytes(), &unix, &dos, &marked(&unix), &marked(&dos)]
            .into_iter()
            .any(|form| sha256_hex(form).eq_ignore_ascii_case(stored))
    }
}

fn sha256_hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(HEX[usize::from(half)]);
    Sha256::digest(bytes).iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn to_unix_line_ends(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\r' || rest.peek() != Some(&b'\n') {
            out.push(byte);
        }
    }
    out
}

fn to_dos_line_ends(unix: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(unix.len() + unix.len() / 16);
    for &byte in unix {
        if byte == b'\n' {
            out.push(b'\r');
        }
        out.push(byte);
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_stored_form_is_plain_sha256() {
        // FIPS 180-2, appendix B.1.
        assert_eq!(
            FileChecksum::of(*b"abc").as_str(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn a_lone_carriage_return_is_content() {
        let with = FileChecksum::of(*b"a\rb\n");
        let without = FileChecksum::of(*b"ab\n");
        assert!(!without.matches(with.as_str()));
    }

    #[test]
    fn an_edit_is_seen() {
        assert!(!FileChecksum::of(*b"a\n").matches(FileChecksum::of(*b"b\n").as_str()));
    }

    #[test]
    fn what_1x_stored_for_invalid_utf8_still_matches() {
        let stored = sha256_hex("a\u{FFFD}b".as_bytes());
        assert!(FileChecksum::of(*b"a\xFFb").matches(&stored));
    }

    proptest! {
        #[test]
        fn line_ends_and_byte_order_mark_make_no_difference(
            lines in proptest::collection::vec("[a-z\r]{0,8}", 0..8)
        ) {
            // A trailing CR would merge with the LF that follows it into one line end.
            let lines: Vec<_> = lines.iter().map(|line| line.trim_end_matches('\r')).collect();
            let unix = lines.join("\n").into_bytes();
            let dos = lines.join("\r\n").into_bytes();
            let forms = [
                unix.clone(),
                dos.clone(),
                [BYTE_ORDER_MARK, &unix].concat(),
                [BYTE_ORDER_MARK, &dos].concat(),
            ];
            for stored in &forms {
                for on_disk in &forms {
                    let stored = sha256_hex(stored);
                    prop_assert!(FileChecksum::of(on_disk.clone()).matches(&stored));
                }
            }
        }
    }
}
