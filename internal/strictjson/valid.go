package strictjson

import "github.com/go-json-experiment/json/jsontext"

// AnyDepth is for JSON that was judged before: it is deeper than any of it nests.
const AnyDepth = 10_000

// Valid reports whether bytes are one strict JSON value of any depth up to AnyDepth.
func Valid(data []byte) bool { return jsontext.Value(data).IsValid() }
