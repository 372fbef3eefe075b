package configs

import (
	"slices"
	"strings"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/secret"
	"github.com/callgate/callgate/configs/toolfile"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/upstream"
)

// readUpstreams reads the upstreams file. The settings of a model take precedence over
// those of its upstream, and those over the defaults.
func readUpstreams(root document.Node) []upstream.Definition {
	var all []upstream.Definition
	ok := root.Object(document.Field("upstreams", func(n document.Node) {
		n.List("upstreams", func(_ int, item document.Node) { all = append(all, readUpstream(item)) })
	}))
	if !ok {
		return all
	}
	root.FailAt("/upstreams", upstream.Validate(all))
	return all
}

// buildUpstreams makes what the upstreams file says usable.
func (l *loader) buildUpstreams(root document.Node, definitions []upstream.Definition, c *Config) {
	if c.UpstreamsFile == "" || len(l.report.Faults) > 0 {
		return
	}
	models, err := upstream.New(definitions)
	if err != nil {
		root.At("/upstreams").Fail("%v", err) // the reader has refused what could be wrong
	}
	c.Upstreams = models
}

// readUpstream reads one. Its models are read last: they start from its rules.
func readUpstream(n document.Node) upstream.Definition {
	d := upstream.Defaults()
	var (
		models          *document.Node
		key, credential *tool.Credential
	)
	fields := document.Fields(&d,
		document.Field("credential", func(n document.Node) { credential = toolfile.ReadCredential(n) }),
		document.Field("models", func(n document.Node) {
			models = &n
			if n.Describing() {
				readModels(n, &d)
				n.HasElements()
			}
		}),
	)
	n.Object(append(fields, document.Field("key", func(n document.Node) {
		var s secret.Ref
		if secret.DecodeAny(n, "the key that the provider asks for", &s); s.IsSet() {
			key = tool.Bearer(s.String())
		}
	}))...)
	if !n.IsMapping() {
		return d
	}
	n.Requires("found an upstream without %s; expected name, base_url and models", "name", "base_url", "models")
	checkSwitches(n, d.Rules)
	d.Credential = key
	if credential != nil {
		d.Credential = credential
		if key != nil {
			n.At("/credential").Fail("found a credential beside a key; expected one of them")
		}
		reportRun(n, "upstream", "upstream", tool.Run{Type: "http", URL: "https://upstream.invalid/", Credential: credential})
	}
	if models != nil {
		readModels(*models, &d)
	}
	return d
}

func readModels(n document.Node, d *upstream.Definition) {
	n.List("models", func(_ int, item document.Node) { d.Models = append(d.Models, readModel(item, d.Rules)) })
}

// modelPattern is the name of a model, or how names begin and a *, as far as a schema says it.
const modelPattern = `^[^*]+\*?$|^\*$`

// readModel reads a model: its name, or a mapping that says more.
func readModel(n document.Node, rules upstream.Rules) upstream.Model {
	var m upstream.Model
	if !n.IsMapping() {
		const of = "a model, as a name or as a mapping with the key id"
		n.Text(of, &m.ID)
		n.Matching(of, modelPattern)
		return m
	}
	n.Object(append(document.Fields(&m), document.Fields(&rules)...)...)
	n.Describes(func(s *document.Schema) { // its defaults are the values of the upstream
		s.Walk(func(_ []string, s *document.Schema) { s.Default = nil })
	})
	n.Requires("found a model without %s; expected the name that the application says", "id")
	checkSwitches(n, rules)
	m.Rules = &rules
	return m
}

// bringsTools reports whether requests to a model of the upstream may bring tools that the registry
// does not have.
func bringsTools(d upstream.Definition) bool {
	return d.Rules.Tools == upstream.FromRequest || slices.ContainsFunc(d.Models, func(m upstream.Model) bool {
		return m.Rules != nil && m.Rules.Tools == upstream.FromRequest
	})
}

// checkSwitches reports switches of a protocol that is not spoken: they would have no effect. It warns of words
// in hosted_tools that are no type known here: such a word lets a tool of a request pass, and no item of an answer.
func checkSwitches(n document.Node, r upstream.Rules) {
	for _, w := range []upstream.Wire{upstream.MessagesWire, upstream.ResponsesWire} {
		if key, _, ok := n.Child(string(w)); ok && !slices.Contains(r.Speaks, w) {
			key.Fail("found switches of %s, which is not among the protocols that are spoken; expected speaks: [%s]", w, w)
		}
	}
	hosted, stated := n.Resolve("/responses/hosted_tools")
	if !stated {
		return
	}
	for _, word := range hosted.Content {
		if !slices.ContainsFunc(upstream.HostedTypes,
			func(known string) bool { return word.Value == known || strings.HasPrefix(word.Value, known+"_2") }) {
			n.With(word).Warn(
				"%q is no type of a tool that is known here: it lets tools of this type pass in a request, and no item in a conversation. "+
					"Items pass by mcp_servers, programmatic_calls or unknown_items", word.Value)
		}
	}
}
