package openai

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/wrapper"
)

// usage is the sum over all turns of a run. The zero value is empty.
type usage struct {
	tokens int64
	raw    []byte // as the provider wrote it, while there is one; its sums alone where a call could be found in it
	turns  int
	sum    map[string]any
}

// maxUsageDepth is deeper than usage nests.
const maxUsageDepth = 8

// add adds what one turn has taken.
func (u *usage) add(turn *upstream.Usage) {
	if turn == nil {
		return
	}
	u.tokens = saturatingAdd(u.tokens, tokensOf(turn))
	if u.turns == 1 {
		u.addRaw() // that of one turn is passed on as it is
	}
	u.turns++
	u.raw = turn.Raw
	if !holdsNoCall(u.raw) {
		u.raw = fmt.Appendf(nil, `{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, turn.PromptTokens, turn.CompletionTokens, turn.TotalTokens)
	}
	if u.turns > 1 {
		u.addRaw()
	}
}

// addRaw adds the last turn's object to the sum.
func (u *usage) addRaw() {
	value, err := parser.ReadValue(u.raw, maxUsageDepth)
	if object, ok := value.(map[string]any); err == nil && ok {
		u.sum = addObjects(u.sum, object)
	}
}

// tokensOf is how many tokens a turn has taken; 0 where the provider does not say.
func tokensOf(turn *upstream.Usage) int64 {
	if turn == nil {
		return 0
	}
	return max(turn.TotalTokens, saturatingAdd(turn.PromptTokens, turn.CompletionTokens))
}

// saturatingAdd adds two numbers that are not negative.
func saturatingAdd(a, b int64) int64 { return a + min(b, math.MaxInt64-a) }

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

// encode is the usage as an answer has it; nil where nothing is known of it.
func (u *usage) encode() []byte {
	if u.turns <= 1 {
		return slices.Clone(u.raw)
	}
	raw, err := wrapper.Marshal(u.sum)
	if err != nil {
		return nil
	}
	return raw
}
