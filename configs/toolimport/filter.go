package toolimport

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/internal/similar"
)

// filter is one option that chooses tools: its values, and all that they could have chosen. A filter
// without values chooses everything.
type filter struct {
	option  string // for messages
	values  []string
	matches func(value, candidate string) bool
	matched []bool
	seen    []string
}

func newFilter(option string, values []string, matches func(value, candidate string) bool) *filter {
	return &filter{option: option, values: values, matches: matches, matched: make([]bool, len(values))}
}

// active reports whether the filter can leave anything out.
func (f *filter) active() bool { return len(f.values) > 0 }

// chooses reports whether a value matches one of the candidates, which are those of one tool.
func (f *filter) chooses(candidates ...string) bool {
	if !f.active() {
		return true
	}
	chosen := false
	for _, candidate := range candidates {
		f.seen = append(f.seen, candidate)
		for i, value := range f.values {
			if f.matches(value, candidate) {
				f.matched[i], chosen = true, true
			}
		}
	}
	return chosen
}

// err names the first value that matches nothing.
func (f *filter) err(file string) error {
	if at := slices.Index(f.matched, false); at >= 0 {
		return fmt.Errorf("--%s: %q matches nothing in %s%s", f.option, f.values[at], file, similar.DidYouMean(f.values[at], f.seen))
	}
	return nil
}

// equal is how operations and tags are chosen.
func equal(value, candidate string) bool { return value == candidate }

// matchName is how names are chosen: * stands for any characters, dots included.
func matchName(glob, name string) bool {
	ok, err := path.Match(glob, name)
	return ok && err == nil
}

// matchPath is how paths are chosen: * stands for one segment or a part of it, and a last segment ** for
// everything below.
func matchPath(glob, candidate string) bool {
	base, deep := strings.CutSuffix(glob, "/**")
	if !deep {
		return matchName(glob, candidate)
	}
	segments, most := strings.Split(candidate, "/"), strings.Count(base, "/")+1
	return len(segments) > most && matchName(base, strings.Join(segments[:most], "/"))
}

// checkGlobs reports a glob that can match nothing, as it is written wrongly.
func checkGlobs(option string, globs []string) error {
	for _, glob := range globs {
		if _, err := path.Match(glob, ""); err != nil {
			return fmt.Errorf("--%s: found %q; expected a pattern, in which * stands for any characters and \\ stands before [", option,
				glob)
		}
	}
	return nil
}

// Choices are the values that filters can have for a document of OpenAPI.
type Choices struct{ Operations, Tags, Paths []string }

// OpenAPIChoices lists them, each once and in the order of the document. Of a document that cannot be read there
// are none.
func OpenAPIChoices(file string, data []byte) Choices {
	r := document.Report{Unlimited: true}
	var c Choices
	root, ok := document.ReadExternal(&r, file, data)
	if !ok {
		return c
	}
	add := func(list *[]string, values ...string) {
		for _, v := range values {
			if v != "" && !slices.Contains(*list, v) {
				*list = append(*list, v)
			}
		}
	}
	_, paths, ok := root.Child("paths")
	if !ok || !paths.IsMapping() {
		return c
	}
	paths.Members("paths", func(key, item document.Node) {
		if !item.IsMapping() {
			return
		}
		add(&c.Paths, key.Value)
		item.Members("methods", func(method, operation document.Node) {
			if slices.Contains(methods, method.Value) && operation.IsMapping() {
				add(&c.Operations, operation.StringAt("operationId"))
				add(&c.Tags, tagsOf(operation)...)
			}
		})
	})
	return c
}

// methods are those that tools are made of.
var methods = []string{"get", "head", "post", "put", "patch", "delete"}

// tagsOf are the tags of an operation.
func tagsOf(operation document.Node) []string {
	var tags []string
	if _, list, ok := operation.Child("tags"); ok && list.IsList() {
		list.List("tags", func(_ int, tag document.Node) { tags = append(tags, tag.Value) })
	}
	return tags
}
