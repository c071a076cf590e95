use std::sync::Arc;

use longbow_kernels::{Metric, Scalar};

use super::posting::Centroid;
use crate::encode::Encoder;
use crate::space::Space;

pub(super) fn centroid() -> Arc<Centroid> {
    let space = Space {
        scalar: Scalar::F32,
        metric: Metric::Euclidean,
        dim: 16,
    };
    let encoder = Encoder::new(space, 1, vec![0.0; 16]);
    Arc::new(Centroid::new(&encoder, &vec![1.0; encoder.dim()]))
}
