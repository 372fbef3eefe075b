package grammar

// formats are patterns of texts that each format accepts: all of them for the simple
// formats, the usual ones for the others. A format that is missing has none.
var formats = map[string]string{
	"date":                  date,
	"time":                  clock,
	"date-time":             `(?:` + date + `)[Tt](?:` + clock + `)`,
	"duration":              `P(?:` + digits + `W|(?:` + days + `)(?:T(?:` + hours + `))?|T(?:` + hours + `))`,
	"email":                 email,
	"idn-email":             email,
	"hostname":              host,
	"ipv4":                  `(?:` + octet + `\.){3}` + octet,
	"ipv6":                  `(?:` + group + `:){7}` + group + `|(?:` + group + `(?::` + group + `){0,2})?::(?:` + group + `(?::` + group + `){0,2})?`,
	"uri":                   uri,
	"iri":                   uri,
	"uri-reference":         uri + `|` + path,
	"iri-reference":         uri + `|` + path,
	"uri-template":          `[A-Za-z0-9._~/-]{0,400}`,
	"json-pointer":          pointer,
	"relative-json-pointer": `(?:0|[1-9][0-9]{0,8})(?:#|` + pointer + `)`,
	"uuid":                  `[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}`,
	"regex":                 `[A-Za-z0-9 _-]{0,400}`,
}

const (
	date = `[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))` +
		`|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29`
	clock   = `(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])`
	digits  = `[0-9]{1,6}`
	days    = digits + `Y(?:` + digits + `M(?:` + digits + `D)?)?|` + digits + `M(?:` + digits + `D)?|` + digits + `D`
	hours   = digits + `H(?:` + digits + `M(?:` + digits + `S)?)?|` + digits + `M(?:` + digits + `S)?|` + digits + `S`
	label   = `[A-Za-z0-9]{1,20}(?:-[A-Za-z0-9]{1,20})?`
	host    = label + `(?:\.` + label + `){0,4}`
	email   = `[A-Za-z0-9_+-]{1,20}(?:\.[A-Za-z0-9_+-]{1,20})?@` + host
	octet   = `(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])`
	group   = `[0-9A-Fa-f]{1,4}`
	pchar   = `(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})`
	first   = `(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})`
	path    = `/(?:` + first + pchar + `*)?` + tail
	tail    = `(?:\?` + pchar + `*)?(?:#` + pchar + `*)?`
	uri     = `[A-Za-z][A-Za-z0-9+.-]*:(?://[A-Za-z0-9.~_-]+(?::[0-9]{1,5})?(?:/` + pchar + `*)?|/?(?:` + first + pchar + `*)?)` + tail
	pointer = `(?:/(?:[^~/]|~[01])*)*`
)
