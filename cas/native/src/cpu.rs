//! Which instructions this processor has, of those that hashing and checksums are fast with.
//!
//! SHA-256 is several times faster with SHA-NI (x86-64) or the SHA2 extension (aarch64) than without; a
//! user who waits for a scan should be told which it is.

/// The name and presence of each instruction set, named as in `/proc/cpuinfo`; none on other processors.
#[must_use]
pub fn features() -> Vec<(&'static str, bool)> {
    detect()
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Vec<(&'static str, bool)> {
    vec![
        ("sha_ni", is_x86_feature_detected!("sha")),
        ("aes", is_x86_feature_detected!("aes")),
        ("pclmulqdq", is_x86_feature_detected!("pclmulqdq")),
        ("ssse3", is_x86_feature_detected!("ssse3")),
        ("sse4_1", is_x86_feature_detected!("sse4.1")),
        ("sse4_2", is_x86_feature_detected!("sse4.2")),
        ("avx2", is_x86_feature_detected!("avx2")),
        ("bmi2", is_x86_feature_detected!("bmi2")),
    ]
}

#[cfg(target_arch = "aarch64")]
fn detect() -> Vec<(&'static str, bool)> {
    use std::arch::is_aarch64_feature_detected;
    vec![
        ("sha2", is_aarch64_feature_detected!("sha2")),
        ("aes", is_aarch64_feature_detected!("aes")),
        ("pmull", is_aarch64_feature_detected!("pmull")),
        ("crc32", is_aarch64_feature_detected!("crc")),
        ("asimd", is_aarch64_feature_detected!("neon")),
    ]
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn detect() -> Vec<(&'static str, bool)> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::features;

    /// What the kernel lists, where it lists anything, must be what we detect.
    #[test]
    #[cfg(target_os = "linux")]
    fn agrees_with_the_kernel() {
        let text = std::fs::read_to_string("/proc/cpuinfo").expect("Linux has /proc/cpuinfo");
        let line = text
            .lines()
            .find(|line| line.starts_with("flags") || line.starts_with("Features"));
        let Some(line) = line else { return };
        let flags: Vec<&str> = line.split_whitespace().collect();
        for (name, present) in features() {
            assert_eq!(flags.contains(&name), present, "{name}");
        }
    }
}
