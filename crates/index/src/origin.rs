use std::sync::OnceLock;

use crate::centre::Centre;
use crate::checkpoint::{Reader, Sink, same};
use crate::encode::Encoder;
use crate::error::Result;
use crate::space::Space;

/// Longest vector that there are codes of, in elements.
pub(crate) const MAX_DIM: usize = 1 << 16;

/// What codes are relative to: the mean of a sample of the vectors, chosen once, before or with the first insert.
pub(crate) struct Origin {
    space: Space,
    /// Of the rotation.
    seed: u64,
    encoder: OnceLock<Encoder>,
}

impl Origin {
    /// None was chosen yet.
    ///
    /// # Errors
    /// If the dimension is out of range.
    pub(crate) fn new(space: Space, seed: u64) -> Result<Self> {
        space.check_dim(MAX_DIM)?;
        Ok(Origin {
            space,
            seed,
            encoder: OnceLock::new(),
        })
    }

    /// The same one, as far as it was chosen.
    ///
    /// # Errors
    /// As [`Origin::new`].
    pub(crate) fn like_it(&self) -> Result<Self> {
        let new = Origin::new(self.space, self.seed)?;
        if let Some(encoder) = self.encoder.get() {
            let centre = encoder.centre();
            new.encoder
                .get_or_init(|| Encoder::new(self.space, self.seed, Some(centre)));
        }
        Ok(new)
    }

    /// Takes the mean of some stored vectors, unless one was chosen before.
    pub(crate) fn prepare<'a>(&self, sample: impl Iterator<Item = &'a [u8]>) {
        self.encoder.get_or_init(|| {
            let centre = Centre::of(self.space, sample);
            Encoder::new(self.space, self.seed, Some(centre))
        });
    }

    pub(crate) fn is_chosen(&self) -> bool {
        self.encoder.get().is_some()
    }

    /// What encodes relative to the origin; zero is chosen if none was.
    #[inline(always)]
    pub(crate) fn encoder(&self) -> &Encoder {
        self.encoder
            .get_or_init(|| Encoder::new(self.space, self.seed, None))
    }

    /// Writes what a checkpoint of an index of codes begins with.
    ///
    /// ```text
    /// offset  bytes  what
    ///      0  8      magic
    ///      8  4      version
    ///     12  1      element type: 0 float32, 1 float16, 2 int8, 3 uint8
    ///     13  1      metric: 0 euclidean, 1 cosine, 2 dot product
    ///     14  2      zero
    ///     16  4      dimension
    ///     20  8      seed of the rotation
    ///     28  8      rows in the index
    /// ```
    pub(crate) fn put_head(
        &self,
        (magic, version): ([u8; 8], u32),
        rows: u64,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        sink.put(&magic)?;
        sink.put(&version.to_le_bytes())?;
        sink.put(&[self.space.scalar as u8, self.space.metric as u8, 0, 0])?;
        sink.put(&(self.space.dim as u32).to_le_bytes())?;
        sink.put(&self.seed.to_le_bytes())?;
        sink.put(&rows.to_le_bytes())
    }

    /// Checks what [`Origin::put_head`] wrote, whose magic and version were checked before, and returns the number of
    /// rows.
    pub(crate) fn read_head(&self, reader: &mut Reader<'_>) -> Result<u64> {
        debug_assert_eq!(reader.at, 0, "the head comes first");
        reader.bytes(12)?;
        let [scalar, metric, zeros @ ..]: [u8; 4] = reader.array()?;
        same("element type", &(self.space.scalar as u8), &scalar)?;
        same("metric", &(self.space.metric as u8), &metric)?;
        same("reserved", &0, &u16::from_le_bytes(zeros))?;
        same("dimension", &(self.space.dim as u32), &reader.u32()?)?;
        same("seed", &self.seed, &reader.u64()?)?;
        reader.u64()
    }

    /// Writes the centre, f32; an empty index may have none yet, and zeros stand for it.
    ///
    /// ```text
    /// bytes  what
    /// 4 d    centre; d is the dimension, and for the dot product one more
    ///        for the dot product only:
    /// 4        radius of the sphere that vectors are on
    /// 4        length of the longest vector, or the radius if that is more
    /// ```
    pub(crate) fn put_centre(&self, sink: &mut Sink<'_>) -> Result<()> {
        match self.encoder.get() {
            Some(encoder) => encoder.save_centre(sink),
            None => Encoder::new(self.space, self.seed, None).save_centre(sink),
        }
    }

    /// Chooses the centre that [`Origin::put_centre`] wrote for so many rows, unless it stands for none.
    pub(crate) fn read_centre(&self, rows: u64, reader: &mut Reader<'_>) -> Result<()> {
        let centre = Centre::load(self.space, reader)?;
        if rows > 0 || !centre.is_zero() {
            let encoder = Encoder::new(self.space, self.seed, Some(centre));
            self.encoder.get_or_init(|| encoder);
        }
        Ok(())
    }
}
