package main

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/callgate/callgate/internal/decimal"
)

func member(v any, at []string) (value any, there bool) {
	for _, token := range at {
		switch parent := v.(type) {
		case map[string]any:
			if v, there = parent[token]; !there {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(parent) {
				return nil, false
			}
			v = parent[i]
		default:
			return nil, false
		}
	}
	return v, true
}

func remove(v any, at []string) {
	parent, _ := member(v, at[:len(at)-1])
	if object, ok := parent.(map[string]any); ok {
		delete(object, at[len(at)-1])
	}
}

// decode reads the JSON value at the beginning of a text, as loosely as encoding/json does; nil
// where there is none.
func decode(text string) any {
	var v any
	if decimal.Unmarshal([]byte(text), &v) != nil {
		return nil
	}
	return v
}

// encode writes a value that decode has read, or one of the same kinds.
func encode(v any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(v) != nil {
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}
