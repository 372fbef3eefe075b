package schema

import (
	"encoding/json"

	"github.com/callgate/callgate/internal/decimal"
)

// wellFormed reports whether a value is of JSON's types and every number within the limits,
// regardless of the schema.
func wellFormed(v any, depth int) bool {
	if depth > maxValueDepth {
		return false
	}
	switch v := v.(type) {
	case nil, bool, string:
		return true
	case json.Number:
		_, ok := decimal.Parse(string(v))
		return ok
	case []any:
		for _, item := range v {
			if !wellFormed(item, depth+1) {
				return false
			}
		}
		return true
	case map[string]any:
		for _, item := range v {
			if !wellFormed(item, depth+1) {
				return false
			}
		}
		return true
	}
	return false
}
