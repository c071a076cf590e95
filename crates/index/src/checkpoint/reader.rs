use crc_fast::{CrcAlgorithm, checksum};

use crate::error::{Error, Result};

/// Bytes that are read from their begin to their end.
pub(crate) struct Reader<'a> {
    pub(crate) input: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let have = self.input.len();
        match self
            .at
            .checked_add(count)
            .and_then(|end| self.input.get(self.at..end))
        {
            Some(bytes) => {
                self.at += count;
                Ok(bytes)
            }
            None => Err(Error::Truncated {
                need: self.at as u64 + count as u64,
                have: have as u64,
            }),
        }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn f32(&mut self) -> Result<f32> {
        self.array().map(f32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Floats, all of which must be finite.
    pub(crate) fn floats(&mut self, field: &'static str, count: usize) -> Result<Vec<f32>> {
        let at = self.at as u64;
        let (elements, _) = self.bytes(count * 4)?.as_chunks();
        let floats: Vec<f32> = elements.iter().map(|x| f32::from_le_bytes(*x)).collect();
        match floats.iter().position(|x| !x.is_finite()) {
            None => Ok(floats),
            Some(place) => Err(Error::Inconsistent {
                at: at + 4 * place as u64,
                field,
                got: u64::from(floats[place].to_bits()),
                limit: u64::from(f32::MAX.to_bits()),
            }),
        }
    }
}

/// Checks magic, version and checksum, and returns the bytes before the checksum.
pub(crate) fn checked(input: &[u8], expected: [u8; 8], known: u32) -> Result<&[u8]> {
    let mut reader = Reader { input, at: 0 };
    let magic = reader.array()?;
    if magic != expected {
        return Err(Error::Magic {
            expected,
            got: magic,
        });
    }
    let version = reader.u32()?;
    if version != known {
        return Err(Error::Version {
            known,
            got: version,
        });
    }
    let (body, sum) = input.split_at(input.len() - 4);
    let expected = u32::from_le_bytes([sum[0], sum[1], sum[2], sum[3]]);
    let got = checksum(CrcAlgorithm::Crc32Iscsi, body) as u32;
    if expected != got {
        return Err(Error::Checksum { expected, got });
    }
    Ok(body)
}
