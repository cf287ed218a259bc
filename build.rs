//! Lets the linker leave Node's symbols open when the binding is built.

fn main() {
    #[cfg(feature = "napi")]
    napi_build::setup();
}
