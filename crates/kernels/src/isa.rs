use std::fmt;

/// Instruction sets with kernels of their own, widest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Isa {
    /// AVX-512 F, BW and VL, with AVX2, FMA and F16C: 16 lanes, masked tails.
    Avx512,
    /// AVX2, FMA and F16C: 8 lanes.
    Avx2,
    /// SSE2, which every `x86_64` processor has: 4 lanes.
    Sse2,
    /// NEON, which every `aarch64` processor has: 4 lanes.
    Neon,
    /// No vector instructions; the definition that the others are tested against.
    Scalar,
}

impl Isa {
    /// All instruction sets, widest first; those of other architectures are never available.
    pub const ALL: [Isa; 5] = [Isa::Avx512, Isa::Avx2, Isa::Sse2, Isa::Neon, Isa::Scalar];

    /// Whether this processor can run it.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && Isa::Avx2.is_available()
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c")
            }
            Isa::Sse2 => cfg!(target_arch = "x86_64"),
            Isa::Neon => cfg!(target_arch = "aarch64"),
            Isa::Scalar => true,
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Avx512 | Isa::Avx2 => false,
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Isa::Avx512 => "avx512",
            Isa::Avx2 => "avx2",
            Isa::Sse2 => "sse2",
            Isa::Neon => "neon",
            Isa::Scalar => "scalar",
        })
    }
}
