package schema

import (
	"encoding/json"
	"slices"

	"github.com/callgate/callgate/internal/rawjson"
)

// writeJSON writes a decoded document as encoding/json does: with sorted names, in one line.
func writeJSON(v any) json.RawMessage {
	const usual = 1 << 10
	return slices.Clone(appendJSON(make([]byte, 0, usual), v)) // which is as long as it must be
}

func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case bool:
		if v {
			return append(b, "true"...)
		}
		return append(b, "false"...)
	case string:
		return rawjson.AppendEscaped(b, v)
	case json.Number:
		return append(b, v...)
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, item)
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		for i, name := range sortedNames(v) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(rawjson.AppendEscaped(b, name), ':')
			b = appendJSON(b, v[name])
		}
		return append(b, '}')
	}
	return append(b, "null"...)
}
