use longbow_index::*;
use std::io;
use std::time::Instant;
#[derive(Debug)]
struct Flat {
    base: usize,
    len: std::sync::atomic::AtomicUsize,
}
impl BlockFile for Flat {
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let end = offset as usize + bytes.len();
        unsafe {
            std::ptr::copy_nonoverlapping(
                bytes.as_ptr(),
                (self.base + offset as usize) as *mut u8,
                bytes.len(),
            );
        }
        self.len.fetch_max(end, std::sync::atomic::Ordering::SeqCst);
        Ok(())
    }
    fn read(&self, _o: u64, _b: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }
    fn len(&self) -> io::Result<u64> {
        Ok(self.len.load(std::sync::atomic::Ordering::SeqCst) as u64)
    }
    fn bytes(&self, offset: u64, len: usize) -> Option<&[u8]> {
        Some(unsafe { std::slice::from_raw_parts((self.base + offset as usize) as *const u8, len) })
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
struct M {
    b: Vec<u8>,
    dim: usize,
}
impl M {
    fn read(p: &str) -> M {
        let b = std::fs::read(p).unwrap();
        let h = 10 + u16::from_le_bytes([b[8], b[9]]) as usize;
        let s = String::from_utf8_lossy(&b[10..h]).to_string();
        let dim = s
            .split(['(', ')'])
            .nth(1)
            .unwrap()
            .split(',')
            .nth(1)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        M {
            b: b[h..].to_vec(),
            dim,
        }
    }
    fn n(&self) -> usize {
        self.b.len() / 4 / self.dim
    }
    fn row(&self, r: usize) -> &[u8] {
        &self.b[r * 4 * self.dim..(r + 1) * 4 * self.dim]
    }
}
impl VectorSource for M {
    fn vector(&self, r: u64) -> Option<&[u8]> {
        Some(self.row(r as usize))
    }
}
fn main() {
    let dir = std::env::args().nth(1).unwrap();
    let replicas: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    let split: usize = std::env::args().nth(3).unwrap().parse().unwrap();
    let base = M::read(&format!("{dir}/base.npy"));
    let q = M::read(&format!("{dir}/queries.npy"));
    let cos = dir.contains("wordnet");
    let space = Space {
        scalar: Scalar::F32,
        metric: if cos {
            Metric::Cosine
        } else {
            Metric::Euclidean
        },
        dim: base.dim,
    };
    let cap = 4usize << 30;
    let layout = std::alloc::Layout::from_size_align(cap, 4096).unwrap();
    let ptr = unsafe { std::alloc::alloc(layout) } as usize;
    let file = Flat {
        base: ptr,
        len: 0.into(),
    };
    let params = SpFreshParams {
        replicas,
        split,
        merge: split / 8,
        ..SpFreshParams::default()
    };
    let index = SpFresh::new(space, params, Box::new(file)).unwrap();
    index.prepare((0..1000).map(|r| base.row(r * (base.n() / 1000))));
    let t = Instant::now();
    for r in 0..base.n() {
        index.insert(r as u64, base.row(r)).unwrap();
    }
    let s = t.elapsed().as_secs_f64();
    let (most, all) = index.lengths();
    println!(
        "rows {} dim {} build {:.1}s = {:.0}/s postings {} most {} copies {:.2} mem/row {:.1} file/row {:.0} free {:.2}",
        base.n(),
        base.dim,
        s,
        base.n() as f64 / s,
        index.postings(),
        most,
        all as f64 / base.n() as f64,
        index.memory_bytes() as f64 / base.n() as f64,
        index.file_bytes().0 as f64 / base.n() as f64,
        index.file_bytes().1 as f64 / index.file_bytes().0 as f64
    );
    let nq = q.n().min(500);
    let queries: Vec<Query> = (0..nq)
        .map(|r| {
            let f: Vec<f32> = q
                .row(r)
                .chunks_exact(4)
                .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
                .collect();
            Query::new(space, &f).unwrap()
        })
        .collect();
    let truth: Vec<Vec<Neighbor>> = queries
        .iter()
        .map(|q| {
            let mut t = TopK::new(10);
            flat::scan(
                q,
                0,
                &base.b,
                &|_| true,
                &mut t,
                &mut SearchStats::default(),
            );
            t.into_sorted()
        })
        .collect();
    for probes in [2, 4, 8, 16, 32, 64, 128, 860] {
        let mut best = f64::MAX;
        let mut st = SearchStats::default();
        let mut hits = 0;
        for _ in 0..3 {
            st = SearchStats::default();
            hits = 0;
            let t = Instant::now();
            for (i, q) in queries.iter().enumerate() {
                let f = index.search(q, (10, probes), &|_| true, &base, &mut st);
                hits += f.iter().filter(|x| truth[i].contains(x)).count();
            }
            best = best.min(t.elapsed().as_secs_f64());
        }
        println!(
            "probes {probes} recall {:.4} us {:.1} dist {} popped {} KB {}",
            hits as f64 / nq as f64 / 10.0,
            best / nq as f64 * 1e6,
            st.distance_computations / nq as u64,
            st.nodes_popped / nq as u64,
            st.bytes_touched / nq as u64 / 1024
        );
    }
}
