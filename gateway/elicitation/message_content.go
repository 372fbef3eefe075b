package elicitation

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/refusal"
)

// readContent reads the content of a message, one part or a list of them, and returns the
// members that are passed on. show transforms its texts.
func readContent(value any, show func(string) string) (display any, faults []Fault) {
	list, several := value.([]any)
	if !several {
		return readPart(value, []string{"content"}, show)
	}
	if len(list) == 0 || len(list) > maxMessages {
		return nil, []Fault{invalid("must hold 1 to "+strconv.Itoa(maxMessages)+" parts", "content")}
	}
	parts := []any{}
	for i, one := range list {
		part, found := readPart(one, []string{"content", strconv.Itoa(i)}, show)
		parts, faults = append(parts, part), append(faults, found...)
	}
	return parts, faults
}

// readPart reads a text, an image or a sound.
func readPart(value any, path []string, show func(string) string) (display object, faults []Fault) {
	m, faults := asObject(value, path)
	if faults != nil {
		return nil, faults
	}
	at := func(name string) []string { return append(slices.Clone(path), name) }
	kind, faults := m.requiredText("type", path)
	if faults != nil {
		return nil, faults
	}
	display = object{{"type", kind}}
	allowed := []string{"type", "annotations"}
	switch kind {
	case "text":
		text, missing := m.requiredText("text", path)
		allowed, faults = append(allowed, "text"), missing
		display.add("text", show(text))
	case "image", "audio":
		data, missing := m.requiredText("data", path)
		if faults = missing; missing == nil && !isBase64(data) {
			faults = append(faults, invalid("must be base64", at("data")...))
		}
		media, missing := m.requiredText("mimeType", path)
		if faults = append(faults, missing...); missing == nil && !isMediaType(media, kind) {
			faults = append(faults, invalid("must be a media type of "+kind, at("mimeType")...))
		}
		allowed = append(allowed, "data", "mimeType")
		display.add("data", data)
		display.add("mimeType", media)
	default:
		return nil, []Fault{invalid("must be text, image or audio", at("type")...)}
	}
	faults = append(faults, m.unexpected(path, allowed...)...)
	if notes, has := m["annotations"]; has {
		read, found := readAnnotations(notes, at("annotations"))
		faults = append(faults, found...)
		display.add("annotations", read)
	}
	return display, faults
}

// readAnnotations reads for whom a part is, how much it matters and how old it is.
func readAnnotations(value any, path []string) (display object, faults []Fault) {
	m, faults := asObject(value, path)
	if faults != nil {
		return nil, faults
	}
	at := func(name string) []string { return append(slices.Clone(path), name) }
	faults = m.unexpected(path, "audience", "priority", "lastModified")
	if roles, has := m["audience"]; has {
		list, ok := roles.([]any)
		if !ok || len(list) > 2 || slices.ContainsFunc(list, func(r any) bool { return r != "user" && r != "assistant" }) {
			faults = append(faults, invalid("must be a list of user and assistant", at("audience")...))
		}
		display.add("audience", roles)
	}
	if value, has := m["priority"]; has {
		if n, ok := asNumber(value); !ok || !n.isFraction() {
			faults = append(faults, invalid("must be a number from 0 to 1", at("priority")...))
		}
		display.add("priority", value)
	}
	if when, has := m["lastModified"]; has {
		s, ok := when.(string)
		if !ok || len(s) > maxName || !isPlain(s) {
			faults = append(faults, invalid("must be a time", at("lastModified")...))
		}
		display.add("lastModified", s)
	}
	return display, faults
}

func isBase64(s string) bool {
	if s == "" || strings.ContainsAny(s, "\r\n") { // which the decoder skips
		return false
	}
	_, err := base64.StdEncoding.Strict().DecodeString(s)
	return err == nil
}

// isMediaType reports whether a text is a media type of a kind, without parameters.
func isMediaType(s, of string) bool {
	rest, ok := strings.CutPrefix(s, of+"/")
	return ok && rest != "" && len(rest) <= maxName && !strings.ContainsFunc(rest, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$&-^_.+", r))
	})
}

// asObject is a value that must be an object.
func asObject(value any, path []string) (members, []Fault) {
	m, ok := value.(map[string]any)
	if !ok {
		return nil, []Fault{{refusal.WrongType, path, pathName(path) + " must be an object."}}
	}
	return m, nil
}

// unexpected reports members of other names than these.
func (m members) unexpected(path []string, allowed ...string) (faults []Fault) {
	for _, found := range sortedNames(m) {
		at := append(slices.Clone(path), found)
		if found == "_meta" {
			if _, ok := m[found].(map[string]any); !ok {
				faults = append(faults, Fault{refusal.WrongType, at, pathName(at) + " must be an object."})
			}
			continue
		}
		if !slices.Contains(allowed, found) {
			faults = append(faults, Fault{refusal.UnexpectedArgument, at,
				pathName(at) + " is not part of this answer. Send the answer again without it."})
		}
	}
	return faults
}

// requiredText returns a required member that must be a string.
func (m members) requiredText(member string, path []string) (string, []Fault) {
	at := append(slices.Clone(path), member)
	value, has := m[member]
	if !has {
		return "", []Fault{{refusal.MissingArgument, at, pathName(at) + " is missing. This answer requires it: a string."}}
	}
	s, ok := value.(string)
	if !ok {
		return "", []Fault{{refusal.WrongType, at, pathName(at) + " must be a string."}}
	}
	return s, nil
}
