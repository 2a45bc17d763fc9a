//! Where a part of a request stands in the caller's body.

/// Where a part of a request stands in the caller's body; shows as a path such as `messages[3].content[1]`.
///
/// The default is no place, for parts that no caller wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    list: &'static str,
    item: Option<u32>,
    field: &'static str,
    part: Option<u32>,
}

impl Place {
    /// Returns the place of a whole field.
    pub const fn field(list: &'static str) -> Self {
        Self { list, item: None, field: "", part: None }
    }

    /// Returns the place of an item of a list of the body: `list[item]`.
    pub fn item(list: &'static str, item: usize) -> Self {
        Self { list, item: Some(clip(item)), field: "", part: None }
    }

    /// Returns the place of a field of the item: `list[item].field`.
    #[must_use]
    pub const fn in_field(mut self, field: &'static str) -> Self {
        self.field = field;
        self
    }

    /// Returns the place of a part of a field of the item: `list[item].field[part]`.
    #[must_use]
    pub fn in_part(mut self, field: &'static str, part: usize) -> Self {
        self.field = field;
        self.part = Some(clip(part));
        self
    }

    /// Returns whether it is the place of a part of something larger.
    pub(crate) const fn is_part(self) -> bool {
        self.part.is_some()
    }

    /// Returns the path of a field below the place.
    pub fn below(self, field: &str) -> String {
        format!("{self}.{field}")
    }
}

fn clip(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.list)?;
        if let Some(item) = self.item {
            write!(f, "[{item}]")?;
        }
        if !self.field.is_empty() {
            write!(f, ".{}", self.field)?;
        }
        if let Some(part) = self.part {
            write!(f, "[{part}]")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn places_show_as_paths() {
        let message = Place::item("messages", 3);
        assert_eq!(message.to_string(), "messages[3]");
        assert_eq!(message.in_field("content").to_string(), "messages[3].content");
        assert_eq!(message.in_part("content", 1).to_string(), "messages[3].content[1]");
        assert_eq!(
            message.in_part("content", 1).below("image_url.detail"),
            "messages[3].content[1].image_url.detail"
        );
        assert_eq!(Place::field("instructions").to_string(), "instructions");
    }
}
