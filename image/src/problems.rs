//! What is wrong in an image, one line each.
//!
//! A broken image can have a broken part in every byte, so only the first lines are kept.

/// Lines that are kept.
const KEPT: usize = 50;

/// The lines.
#[derive(Clone, Debug, Default)]
pub struct Problems {
    /// How many there were.
    pub count: u64,
    /// The first of them.
    pub first: Vec<String>,
}

impl Problems {
    /// Adds one.
    pub fn add(&mut self, line: impl Into<String>) {
        self.count += 1;
        if self.first.len() < KEPT {
            self.first.push(escaped(&line.into()));
        }
    }

    /// Adds those of a part, with its name in front.
    pub fn add_all(&mut self, name: &str, of: Problems) {
        self.count += of.count;
        for line in of.first {
            if self.first.len() < KEPT {
                self.first.push(escaped(&format!("{name}: {line}")));
            }
        }
    }
}

/// One line, whatever is in a name.
fn escaped(line: &str) -> String {
    let mut text = String::new();
    for letter in line.chars() {
        if letter.is_control() {
            text.extend(letter.escape_default());
        } else {
            text.push(letter);
        }
    }
    text
}
