package parser

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// TestNamesAreForgotten: texts that are read one after the other and at once share the memory of their
// names, and no verdict depends on another text.
func TestNamesAreForgotten(t *testing.T) {
	var long strings.Builder
	for i := range 40 {
		fmt.Fprintf(&long, `"n%d":{"a":{"b":[{"a":1},{}]}},`, i)
	}
	texts := map[string]bool{
		`{"a":1,"b":{"a":2,"c":{}}}`:      true,
		`{"a":{},"b":{},"c":{"b":1}}`:     true,
		`{"a":1,"b":{"a":2,"a":3}}`:       false,
		`{"a":{"b":1},"a":2}`:             false,
		`{"b":1,"c":`:                     false,
		`[{"a":1},{"a":1,"b":2},{"b":3}]`: true,
		`[{"a":1},{"b":1,"b":2}]`:         false,
		`{` + long.String() + `"a":1}`:    true,
		`{` + long.String() + `"n3":1}`:   false,
		`{` + long.String() + `"n39":1}`:  false,
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				for text, valid := range texts {
					if err := CheckValue([]byte(text), 16); (err == nil) != valid {
						t.Errorf("%.60s: %v", text, err)
					}
				}
			}
		})
	}
	all.Wait()
}
