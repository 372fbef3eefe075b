package document

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/callgate/callgate/internal/duration"
)

// Reader is a type of values that reads itself, in the place of Fields; of says what the value is.
type Reader interface {
	ReadNode(n Node, of string)
}

// Fields are the readers of the keys of a struct, which into points to, in the order of its fields.
// A tag says what a key is: key (its name; empty: the keys of the field stand among these), of (what
// the value is, for messages and the schema), words (the ones of which it is one; of a boolean, the
// words for false and true), range (low..high), pattern (of its texts; the schema alone has it, and
// another package checks it), form (the name of a pattern in forms; a label is checked here), list
// (unique, filled), restart (a change waits for one) and example (the
// value in the annotated example, where the key is absent by default; empty: a section). A field of own
// takes the place of the one with its key.
func Fields(into any, own ...FieldReader) []FieldReader {
	of := reflect.ValueOf(into).Elem()
	all := make([]FieldReader, 0, of.NumField())
	for i := range of.NumField() {
		tag, at := of.Type().Field(i).Tag, of.Field(i)
		key, tagged := tag.Lookup("key")
		switch {
		case !tagged:
		case key == "":
			all = append(all, Fields(at.Addr().Interface(), own...)...)
		default:
			read := Field(key, func(n Node) { readValue(n, tag, at) })
			if i := slices.IndexFunc(own, func(f FieldReader) bool { return f.key == key }); i >= 0 {
				read = own[i]
			}
			if pattern := cmp.Or(tag.Get("pattern"), forms[tag.Get("form")]); pattern != "" {
				read = read.Matching(pattern)
			}
			all = append(all, read)
		}
	}
	return all
}

// readValue reads a value of a type into a field of it.
func readValue(n Node, tag reflect.StructTag, at reflect.Value) {
	of, words := tag.Get("of"), strings.Fields(tag.Get("words"))
	switch into := at.Addr().Interface().(type) {
	case Reader:
		into.ReadNode(n, of)
		return
	case *json.RawMessage:
		n.readJSON(of, into)
		return
	case *time.Duration:
		switch low, high, _ := strings.Cut(tag.Get("range"), ".."); {
		case high != "":
			n.Span(of, spanBound(low), spanBound(high), into)
		case low != "":
			n.durationOrZero(of, into)
		default:
			n.Duration(of, into)
		}
		return
	}
	switch at.Kind() {
	case reflect.Pointer:
		value := reflect.New(at.Type().Elem())
		readValue(n, tag, value.Elem())
		at.Set(value)
	case reflect.Struct:
		n.Object(Fields(at.Addr().Interface())...)
	case reflect.Slice:
		readSlice(n, tag, at)
	case reflect.String:
		text := at.String()
		switch {
		case len(words) > 0:
			ReadChoice(n, of, &text, words...)
		case tag.Get("form") == "label":
			n.Label(of, &text)
		default:
			n.Text(of, &text)
		}
		at.SetString(text)
	case reflect.Bool:
		yes, word := at.Bool(), ""
		if len(words) == 2 {
			ReadChoice(n, of, &word, words...)
			yes = word == words[1]
		} else {
			n.Bool(of, &yes)
		}
		at.SetBool(yes)
	case reflect.Int, reflect.Int64:
		number := at.Int()
		low, high, _ := strings.Cut(tag.Get("range"), "..")
		ReadInt(n, of, bound(low), bound(high), &number)
		at.SetInt(number)
	case reflect.Float64:
		n.ratio(of, at.Addr().Interface().(*float64))
	default:
		panic(fmt.Sprintf("configs/document: no reader of %s", at.Type()))
	}
}

// readSlice reads a list of texts or words, which takes the place of the one before.
func readSlice(n Node, tag reflect.StructTag, at reflect.Value) {
	rules, words := tag.Get("list"), strings.Fields(tag.Get("words"))
	of := tag.Get("of")
	item := "one of the " + of
	if len(words) > 0 {
		of, item, _ = strings.Cut(of, ": ")
	}
	at.SetZero()
	n.List(of, func(_ int, one Node) {
		text := ""
		if len(words) > 0 {
			ReadChoice(one, item, &text, words...)
		} else {
			one.Text(item, &text)
		}
		value := reflect.New(at.Type().Elem()).Elem()
		value.SetString(text)
		at.Set(reflect.Append(at, value))
	})
	if strings.Contains(rules, "unique") {
		n.Unique()
	}
	if strings.Contains(rules, "filled") {
		n.HasElements()
	}
}

// readJSON reads a value of any type but null as JSON.
func (n Node) readJSON(of string, into *json.RawMessage) {
	n.Free(of)
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		n.Fail("found nothing; expected %s", of)
		return
	}
	if value, ok := n.JSON(); ok {
		*into = value
	}
}

// forms are the patterns that have a name in tags: what is checked elsewhere, as far as a schema
// says it.
var forms = map[string]string{
	"url":     `^https?://[^#]+$`,
	"address": `^[0-9a-fA-F.:]+(/[0-9]{1,3})?$`, // or a prefix
}

func spanBound(text string) time.Duration {
	d, ok := duration.Read(text)
	if !ok {
		panic(fmt.Sprintf("configs/document: the tag range has the bound %q", text))
	}
	return d
}

func bound(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("configs/document: the tag range has the bound %q", text))
	}
	return n
}
