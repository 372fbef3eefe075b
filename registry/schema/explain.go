package schema

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/kaptinlin/jsonschema"
)

// maxReportSteps bounds the work of writing down where the faults of one value are.
const maxReportSteps = 600_000

// explanation turns the result of the library into violations. It reads the structure of the result,
// never its sentences: each result has the title of the node that it is about (see builder), the
// keywords that failed, and the results of the schemas inside.
type explanation struct {
	words       *words
	nodes       []*node
	steps       int
	path        []pathToken
	found       collector
	suggestions memberSuggestions
}

// failures are the keywords of a schema alone, in the order in which they are reported.
var failures = []struct {
	keyword string
	fault   faultKind
}{
	{"schema", faultNever}, {"enum", faultEnum}, {"const", faultConst},
	{"minLength", faultMinLength}, {"maxLength", faultMaxLength}, {"pattern", faultPattern}, {"format", faultFormat},
	{"minimum", faultMinimum}, {"maximum", faultMaximum}, {"exclusiveMinimum", faultExclusiveMinimum},
	{"exclusiveMaximum", faultExclusiveMaximum},
	{"multipleOf", faultMultiple},
	{"minItems", faultMinItems}, {"maxItems", faultMaxItems}, {"uniqueItems", faultUnique}, {"minContains", faultContains},
	{"maxContains", faultContainsMany},
	{"minProperties", faultMinProperties}, {"maxProperties", faultMaxProperties},
	{"anyOf", faultAnyOf}, {"oneOf", faultOneOf}, {"not", faultNot}, {"then", faultThen}, {"else", faultElse},
}

// inPlaceFailures are the keywords whose failure leaves open which members the schemas inside would
// have evaluated.
var inPlaceFailures = []string{"$ref", "allOf", "anyOf", "oneOf", "not", "then", "else", "dependentSchemas"}

// value reports the faults of one value by one schema.
func (j *explanation) value(r *jsonschema.EvaluationResult, n *node, v any) {
	if j.exhausted() {
		return
	}
	if r.Errors["type"] != nil {
		j.wrongType(n, v)
		return
	}
	for _, f := range failures {
		if e := r.Errors[f.keyword]; e != nil {
			fault := f.fault
			if e.Code == "one_of_multiple_matches" {
				fault = faultOneOfMany
			}
			j.invalid(n, v, fault)
		}
	}
	if object, is := v.(map[string]any); is {
		j.missingMembers(r, n, object)
	}
	parts := j.parts(r, n)
	if list, is := v.([]any); is {
		j.unevaluatedItems(r, n, list, parts)
	}
	for _, part := range parts {
		j.part(r, &part, n, v)
	}
}

func (j *explanation) missingMembers(r *jsonschema.EvaluationResult, n *node, v map[string]any) {
	missing := func(names []string) {
		for _, name := range names {
			if _, has := v[name]; !has && !j.exhausted() {
				j.missing(n, name)
			}
		}
	}
	if r.Errors["required"] != nil {
		missing(n.required)
	}
	if r.Errors["dependentRequired"] != nil {
		for _, d := range n.dependentRequired {
			if _, has := v[d.name]; has {
				missing(d.required)
			}
		}
	}
}

// unevaluatedItems reports the items that unevaluatedItems: false refuses: there is no result for them.
// The library takes an item that a schema has refused for one that none has evaluated; of those only
// what that schema says is reported.
func (j *explanation) unevaluatedItems(r *jsonschema.EvaluationResult, n *node, v []any, parts []part) {
	e := r.Errors["unevaluatedItems"]
	if e == nil || e.Code != "unevaluated_items_not_allowed" || j.failedInPlace(r) {
		return
	}
	indexes, _ := e.Params["indexes"].(string)
	for text := range strings.SplitSeq(indexes, ", ") {
		refused := func(p part) bool { return (p.by == "prefixItems" || p.by == "items") && p.key == text }
		if i, err := strconv.Atoi(text); err == nil && i < len(v) && !slices.ContainsFunc(parts, refused) {
			j.push(pathToken{index: i})
			j.invalid(n, v[i], faultNever)
			j.pop()
		}
	}
}

// part is the result of a schema inside another.
type part struct {
	result *jsonschema.EvaluationResult
	node   *node  // nil: the schema false
	by     string // the keyword
	key    string // the member or index that the keyword was applied to
	rank   int
}

// parts lists the results that refuse, in an order that does not depend on the library's, which walks
// maps.
func (j *explanation) parts(r *jsonschema.EvaluationResult, n *node) []part {
	var list []part
	for _, detail := range r.Details {
		if detail.IsValid() {
			continue
		}
		p := part{result: detail, node: j.nodeOf(detail)}
		p.by, p.key, _ = strings.Cut(strings.TrimPrefix(detail.EvaluationPath, "/"), "/")
		switch p.by {
		case "properties":
		case "propertyNames":
			p.rank = 1
		case "patternProperties", "prefixItems":
			p.rank = 2
		case "additionalProperties", "items":
			p.rank = 3
		case "":
			// else has no path either; its keyword was reported.
			if n.ref == nil || p.node != n.ref && !n.ref.never {
				continue
			}
			p.rank = 4
		case "allOf":
			p.rank = 5
		case "dependentSchemas":
			p.rank = 6
		case "unevaluatedProperties":
			p.key, p.rank = strings.TrimPrefix(detail.InstanceLocation, "/"), 7
		case "unevaluatedItems":
			// builder negates it twice.
			p.result = detail.Details[0].Details[0]
			p.node, p.rank = j.nodeOf(p.result), 7
		default:
			continue // a branch or a test
		}
		if p.node == nil && p.result.Errors["schema"] == nil {
			continue // of no schema that the library was given
		}
		list = append(list, p)
	}
	slices.SortStableFunc(list, func(a, b part) int {
		if a.by == "patternProperties" && a.by == b.by && a.key == b.key && a.node != nil && b.node != nil {
			return cmp.Compare(a.node.id, b.node.id)
		}
		return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.key, b.key))
	})
	return list
}

// nodeOf returns the node that a result is about; nil for the schema false.
func (j *explanation) nodeOf(r *jsonschema.EvaluationResult) *node {
	title, _ := r.Annotations["title"].(*string)
	if title == nil {
		return nil
	}
	id, err := strconv.Atoi(*title)
	if err != nil || id >= len(j.nodes) {
		return nil
	}
	return j.nodes[id]
}

func (j *explanation) part(r *jsonschema.EvaluationResult, p *part, n *node, v any) {
	if p.by == "" || p.by == "allOf" || p.by == "dependentSchemas" {
		j.inside(p, n, v)
		return
	}
	if list, is := v.([]any); is {
		if i, err := strconv.Atoi(p.key); err == nil && i < len(list) {
			j.push(pathToken{index: i})
			j.inside(p, n, list[i])
			j.pop()
		}
		return
	}
	object, _ := v.(map[string]any)
	member, has := object[p.key]
	switch {
	case !has: // the library evaluates null where a member is required and absent
	case p.by == "propertyNames":
		j.invalidName(n, p.key)
	case p.by == "unevaluatedProperties" && j.mayBeDeclared(r, n, p.key):
	case p.node == nil:
		j.unexpected(n, object, p.key)
	default:
		j.push(pathToken{p.key, -1})
		j.value(p.result, p.node, member)
		j.pop()
	}
}

func (j *explanation) inside(p *part, n *node, v any) {
	if p.node == nil {
		j.invalid(n, v, faultNever)
		return
	}
	j.value(p.result, p.node, v)
}

// mayBeDeclared reports whether a branch that failed may declare a member: which of them it would have
// evaluated is not known, so that only members that no branch declares are reported.
func (j *explanation) mayBeDeclared(r *jsonschema.EvaluationResult, n *node, name string) bool {
	if n.unevaluatedProperties == nil {
		return false // nothing beside this schema declares members: see build
	}
	return j.failedInPlace(r) && j.mayDeclare(n, name, map[*node]bool{})
}

// failedInPlace reports whether a schema beside others for the same value has failed.
func (j *explanation) failedInPlace(r *jsonschema.EvaluationResult) bool {
	return slices.ContainsFunc(inPlaceFailures, func(keyword string) bool { return r.Errors[keyword] != nil })
}

// mayDeclare reports whether a schema, or one beside it, declares a member of
// this name for whatever value.
func (j *explanation) mayDeclare(n *node, name string, visited map[*node]bool) bool {
	if visited[n] || !j.spend(1) {
		return false
	}
	visited[n] = true
	if p, listed := n.properties[name]; listed && !p.never {
		return true
	}
	for _, p := range n.patternProperties {
		if !p.node.never && j.spend(1+p.cost(name)) && p.expr.MatchString(name) {
			return true
		}
	}
	if n.additionalProperties != nil && !n.additionalProperties.never {
		return true
	}
	return slices.ContainsFunc(n.inPlace(), func(beside *node) bool { return j.mayDeclare(beside, name, visited) })
}

func (j *explanation) spend(steps int) bool {
	j.steps += steps
	return !j.exhausted()
}

func (j *explanation) exhausted() bool { return j.steps > maxReportSteps }

func (j *explanation) push(t pathToken) { j.path = append(j.path, t) }
func (j *explanation) pop()             { j.path = j.path[:len(j.path)-1] }
