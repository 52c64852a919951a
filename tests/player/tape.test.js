import assert from "node:assert/strict";
import test from "node:test";
import { decoded, hasSimd } from "../../assets/player/tape.js";

// The model itself is compared with the native tape in tests/export/test_browser_model.py.
test("this machine's WebAssembly has SIMD, and floats travel as base64", () => {
  assert.equal(hasSimd(), true);
  assert.deepEqual([...decoded("AACAPwAAAMA=")], [1, -2]);
});

test("without WebAssembly there is none", (t) => {
  const kept = globalThis.WebAssembly;
  t.after(() => { globalThis.WebAssembly = kept; });
  globalThis.WebAssembly = undefined;
  assert.equal(hasSimd(), false);
});
