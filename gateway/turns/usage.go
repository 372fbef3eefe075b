package turns

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/wrapper"
)

// Usage is the sum of what the turns of a run have taken. The zero value is empty.
type Usage struct {
	tokens int64
	raw    []byte // as the provider wrote it, while there is one
	turns  int
	sum    map[string]any
}

// maxUsageDepth is deeper than usage nests.
const maxUsageDepth = 8

// add adds what one turn has taken. The tokens count against the bound of the run also where
// there is no object of them to pass on.
func (u *Usage) add(tokens int64, raw []byte) {
	u.tokens = SaturatingAdd(u.tokens, tokens)
	if raw == nil {
		return
	}
	if u.turns == 1 {
		u.addRaw() // that of one turn is passed on as it is
	}
	u.turns++
	u.raw = raw
	if u.turns > 1 {
		u.addRaw()
	}
}

// addRaw adds the last turn's object to the sum.
func (u *Usage) addRaw() {
	value, err := parser.ReadValue(u.raw, maxUsageDepth)
	if object, ok := value.(map[string]any); err == nil && ok {
		u.sum = addObjects(u.sum, object)
	}
}

// SaturatingAdd adds two numbers that are not negative.
func SaturatingAdd(a, b int64) int64 { return a + min(b, math.MaxInt64-a) }

// addObjects adds the numbers of two objects, member by member. For any other value the
// later one applies.
func addObjects(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	if out == nil {
		return b
	}
	for name, v := range b {
		switch v := v.(type) {
		case map[string]any:
			before, _ := out[name].(map[string]any)
			out[name] = addObjects(before, v)
		case json.Number:
			out[name] = addNumbers(out[name], v)
		default:
			out[name] = v
		}
	}
	return out
}

func addNumbers(a any, b json.Number) any {
	before, ok := a.(json.Number)
	if !ok {
		return b
	}
	x, errX := before.Int64()
	y, errY := b.Int64()
	if sum := x + y; errX == nil && errY == nil && (sum >= x) == (y >= 0) {
		return json.Number(strconv.FormatInt(sum, 10))
	}
	p, errP := before.Float64()
	q, errQ := b.Float64()
	if errP != nil || errQ != nil {
		return b
	}
	return json.Number(strconv.FormatFloat(p+q, 'g', -1, 64))
}

// Encode is the usage as an answer has it: the provider's object, with the numbers of all turns
// added up; nil where nothing is known of it.
func (u *Usage) Encode() []byte {
	if u.turns <= 1 {
		return slices.Clone(u.raw)
	}
	raw, err := wrapper.Marshal(u.sum)
	if err != nil {
		return nil
	}
	return raw
}
