package callback

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/callgate/callgate/refusal"
)

// maxDepth bounds how deep a message may nest.
const maxDepth = 64

// reader reads the members of a message. It keeps the first fault.
type reader struct {
	object  map[string]any
	token   string
	refused *refusal.Error
}

func (r *reader) fail(format string, args ...any) {
	if r.refused == nil {
		r.refused = malformed(format, args...)
	}
}

// text reads a member that is a string, and not empty where it is required; else it
// may be absent, or null.
func (r *reader) text(member string, required bool) string {
	v, stated := r.object[member]
	text, isText := v.(string)
	switch {
	case required && text == "":
		r.fail("%s is missing, or no string with text", member)
	case stated && v != nil && !isText:
		r.fail("%s is no string", member)
	}
	return text
}

func (r *reader) flag(member string) bool {
	v, stated := r.object[member]
	flag, isFlag := v.(bool)
	if stated && v != nil && !isFlag {
		r.fail("%s is no boolean", member)
	}
	return flag
}

// list reads a member that is a list of objects; absent or null, it is nil.
func (r *reader) list(member string) []map[string]any {
	v := r.object[member]
	if v == nil {
		return nil
	}
	items, isList := v.([]any)
	list := make([]map[string]any, 0, len(items))
	for _, item := range items {
		object, isObject := item.(map[string]any)
		isList = isList && isObject
		list = append(list, object)
	}
	if !isList {
		r.fail("%s is no list of objects", member)
		return nil
	}
	return list
}

func malformed(format string, args ...any) *refusal.Error {
	return refusal.New(refusal.BadRequest, fmt.Sprintf("The message is not valid: "+format+".", args...))
}

// digest hashes the content of a message independently of its encoding: a tool may encode
// the same message differently.
func digest(object map[string]any) string {
	canonical, err := json.Marshal(object)
	if err != nil {
		return "" // what was read always encodes
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}

// masked replaces the token of the callback address in a tool's text: a reader of the token
// could answer in the tool's place.
const masked = "[callback address]"

// mask replaces a token in every text of a value, and in the names of its members.
func mask(value any, token string) any {
	switch v := value.(type) {
	case string:
		return strings.ReplaceAll(v, token, masked)
	case []any:
		for i := range v {
			v[i] = mask(v[i], token)
		}
	case map[string]any:
		for name, member := range v {
			if at := strings.ReplaceAll(name, token, masked); at != name {
				delete(v, name)
				name = at
			}
			v[name] = mask(member, token)
		}
	}
	return value
}
