package toolfile

import (
	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/secret"
	"github.com/callgate/callgate/tool"
)

// whereKeysGo answers those who want an API key in the query.
const whereKeysGo = "found a key in the query; expected in: header, basic or oauth2, since URLs are written to the logs of servers and proxies"

// ReadCredential reads what a server asks for: a reference to a secret, for Authorization: Bearer,
// or a mapping that says how it is sent. It is nil if it is not valid. Messages never show values:
// they may be secrets.
func ReadCredential(n document.Node) *tool.Credential { return readCredential(n, false) }

// readCredential reads a credential, or, where the tool may be called as its caller, what exchanges the token of that.
func readCredential(n document.Node, exchanges bool) *tool.Credential {
	before := n.Report.Count()
	c := &tool.Credential{}
	form := n.StringAt("in")
	switch {
	case !n.IsMapping():
		c = tool.Bearer(readReference(n, "what the server asks for"))
	case form == "query":
		n.At("/in").Fail(whereKeysGo)
	case form == tool.InExchange && !exchanges:
		n.At("/in").Fail("found in: exchange; expected header, basic or oauth2, since this is used for all callers: only a tool file can have a tool called as its caller")
	case form == tool.InBasic:
		readFields(n, c, exchanges, []string{"in", "user", "password"}, basicFields(c)...)
	case form == tool.InOAuth:
		c.OAuth = &tool.OAuth{}
		readFields(n, c, exchanges, []string{"in", "token_url", "client_id", "client_secret"}, oauthFields(c)...)
	case form == tool.InExchange:
		c.OAuth = &tool.OAuth{}
		readFields(n, c, exchanges, []string{"in", "grant", "token_url", "client_id", "client_secret"},
			append(exchangeFields(c.OAuth), oauthFields(c)...)...)
	default:
		readFields(n, c, exchanges, []string{"in", "name", "value"}, headerFields(c)...)
	}
	if n.Report.Count() > before {
		return nil
	}
	return c
}

// readFields reads a mapping of which some keys must be there.
func readFields(n document.Node, c *tool.Credential, exchanges bool, required []string, fields ...document.FieldReader) {
	forms, expected := []string{tool.InHeader, tool.InBasic, tool.InOAuth},
		"in: header with name and value, in: basic with user and password, or in: oauth2 with token_url, client_id and client_secret"
	if exchanges {
		forms = append(forms, tool.InExchange)
	}
	if n.StringAt("in") == tool.InExchange {
		expected = "in: exchange with grant, token_url, client_id and client_secret"
	}
	form := document.Choice("in", "how the credential is sent", &c.In, forms...)
	if n.Object(append([]document.FieldReader{form}, fields...)...) || n.Describing() {
		n.Requires("found a credential without %s; expected "+expected, required...)
	}
}

// exchangeFields are those of a credential that exchanges the token of the caller, beside those of a client.
func exchangeFields(o *tool.OAuth) []document.FieldReader {
	return []document.FieldReader{
		document.Choice("grant", "how the caller's token is exchanged", &o.Grant, tool.GrantTokenExchange, tool.GrantJWTBearer,
			tool.GrantEntraOBO),
		document.Choice("subject_type", "what the caller's token is called", &o.SubjectType, "access_token", "id_token", "jwt"),
		document.Duration("max_age", "how long an issued token is used", &o.MaxAge),
	}
}

func headerFields(c *tool.Credential) []document.FieldReader {
	return []document.FieldReader{
		document.Text("name", "the name of the header", &c.Name).Matching("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$"),
		reference("value", "the secret of the credential", &c.Secret),
		document.Field("prefix", func(n document.Node) {
			n.Matching("what stands before the secret", `^([!-~][ -~]{0,63})?$`)
			if !n.IsString() {
				n.Fail("found %s; expected a string: what stands before the secret", n.TypeName())
				return
			}
			c.Prefix = n.Value
		}),
	}
}

func basicFields(c *tool.Credential) []document.FieldReader {
	return []document.FieldReader{
		nameOrReference("user", "the name of the user, or its place", &c.User).Matching(`^([^:]+|(env|file):.+)$`),
		reference("password", "the password of the credential", &c.Secret),
	}
}

func oauthFields(c *tool.Credential) []document.FieldReader {
	o := c.OAuth
	var audience string
	return append(document.Fields(o,
		nameOrReference("client_id", "the id of the client, or its place", &o.ClientID),
		document.Field("parameters", func(n document.Node) {
			n.Members("parameters of the request for a token", func(key, value document.Node) {
				var text string
				if value.Text("the value of a parameter", &text) {
					addParameter(key, o, key.Value, text)
				}
			})
		}),
		document.Field("ca_file", func(n document.Node) {
			var path string
			if n.Text("a file of certificates", &path) {
				o.CAFile = "file:" + n.ResolvePath(path)
			}
		}),
	),
		reference("client_secret", "the secret of the client", &c.Secret),
		document.Field("audience", func(n document.Node) {
			if n.Text("whom the token is for", &audience) {
				addParameter(n, o, "audience", audience)
			}
		}),
	)
}

func addParameter(n document.Node, o *tool.OAuth, name, value string) {
	if _, twice := o.Parameters[name]; twice {
		n.Fail("found the parameter %s twice; expected it once", name)
		return
	}
	if o.Parameters == nil {
		o.Parameters = map[string]string{}
	}
	o.Parameters[name] = value
}

// reference is the field of a reference to a secret.
func reference(key, of string, into *string) document.FieldReader {
	return document.Field(key, func(n document.Node) { *into = readReference(n, of) })
}

func readReference(n document.Node, of string) string {
	var s secret.Ref
	secret.DecodeAny(n, of, &s)
	return s.String()
}

// nameOrReference is the field of a name, or of a reference to it.
func nameOrReference(key, of string, into *string) document.FieldReader {
	return document.Field(key, func(n document.Node) {
		if n.IsMapping() || secret.IsPlace(n.Value) {
			*into = readReference(n, of)
			return
		}
		// A text of its own: the other form must not become the default of this one in a schema.
		var name string
		if n.Text(of, &name) {
			*into = name
		}
	})
}
