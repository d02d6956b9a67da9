//! What the sender and the receiver of a transfer each have.

/// One value for the sender of a transfer and one for its receiver.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ends<T> {
    /// The sender's.
    pub sender: T,
    /// The receiver's.
    pub receiver: T,
}

impl<T> Ends<T> {
    /// References to both, the sender's first.
    pub fn iter(&self) -> std::array::IntoIter<&T, 2> {
        [&self.sender, &self.receiver].into_iter()
    }
}

impl<T> IntoIterator for Ends<T> {
    type Item = T;
    type IntoIter = std::array::IntoIter<T, 2>;

    fn into_iter(self) -> Self::IntoIter {
        [self.sender, self.receiver].into_iter()
    }
}

impl<'a, T> IntoIterator for &'a Ends<T> {
    type Item = &'a T;
    type IntoIter = std::array::IntoIter<&'a T, 2>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut Ends<T> {
    type Item = &'a mut T;
    type IntoIter = std::array::IntoIter<&'a mut T, 2>;

    fn into_iter(self) -> Self::IntoIter {
        [&mut self.sender, &mut self.receiver].into_iter()
    }
}
