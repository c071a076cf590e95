use std::sync::OnceLock;

use longbow_kernels::Metric;

use crate::checkpoint::{Reader, Sink, same};
use crate::encode::Encoder;
use crate::error::{Error, Result};
use crate::space::Space;

/// Longest vector that there are codes of, in elements.
const MAX_DIM: usize = 1 << 16;

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
    /// If the metric is the inner product, for which codes tell nothing yet, or the dimension is out of range.
    pub(crate) fn new(space: Space, seed: u64) -> Result<Self> {
        if space.metric == Metric::Dot {
            return Err(Error::Unquantized(space.metric));
        }
        space.check_dim(MAX_DIM)?;
        Ok(Origin {
            space,
            seed,
            encoder: OnceLock::new(),
        })
    }

    /// Takes the mean of some stored vectors, unless one was chosen before.
    pub(crate) fn prepare<'a>(&self, sample: impl Iterator<Item = &'a [u8]>) {
        self.encoder.get_or_init(|| {
            let centre = Encoder::mean(self.space, sample);
            Encoder::new(self.space, self.seed, centre)
        });
    }

    pub(crate) fn is_chosen(&self) -> bool {
        self.encoder.get().is_some()
    }

    /// What encodes relative to the origin; zero is chosen if none was.
    #[inline(always)]
    pub(crate) fn encoder(&self) -> &Encoder {
        self.encoder
            .get_or_init(|| Encoder::new(self.space, self.seed, vec![0.0; self.space.dim]))
    }

    /// Writes what a checkpoint of an index of codes begins with.
    ///
    /// ```text
    /// offset  bytes  what
    ///      0  8      magic
    ///      8  4      version
    ///     12  1      element type: 0 float32, 1 float16, 2 int8, 3 uint8
    ///     13  1      metric: 0 euclidean, 1 cosine
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
    pub(crate) fn put_centre(&self, sink: &mut Sink<'_>) -> Result<()> {
        let centre = self.encoder.get().map(Encoder::centre);
        let zeros = vec![0.0; self.space.dim];
        let mut centre = centre.unwrap_or(&zeros).iter();
        centre.try_for_each(|x| sink.put(&x.to_le_bytes()))
    }

    /// Chooses the centre that [`Origin::put_centre`] wrote for so many rows, unless it stands for none.
    pub(crate) fn read_centre(&self, rows: u64, reader: &mut Reader<'_>) -> Result<()> {
        let centre = reader.floats("centre", self.space.dim)?;
        if rows > 0 || centre.iter().any(|x| *x != 0.0) {
            let encoder = Encoder::new(self.space, self.seed, centre);
            self.encoder.get_or_init(|| encoder);
        }
        Ok(())
    }
}
