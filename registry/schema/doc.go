// Package schema compiles JSON Schemas, closes them, and evaluates values by them.
//
// # Contract
//
// A Compiler turns a definition into a Schema, or reports every Fault of it: what
// cannot be evaluated strictly later is refused now. A Schema never changes and is
// safe for concurrent use. Judge returns every violation of a value, at most 100,
// in the order of the protocol; none means that the value is valid. Time and memory
// are bounded by steps that are counted, not measured. Nothing is ever fetched.
//
// Schemas are JSON Schema 2020-12, or draft-07 as far as both give a schema the
// same meaning. A schema is one document: a reference leads to another place of
// the same document or nowhere. Patterns are RE2: \d, \w and \s are ASCII, and
// look-around and back references do not exist.
//
// # Closing
//
// Each object schema that describes a place in the arguments accepts the
// members that it declares and no others. Closing is a transformation from
// schema to schema (see bundler), so both judges read the same closed schema.
//
// # Two judges
//
// Most schemas are plain (see package plain). Their arguments need not be decoded: a
// program reads the bytes and alone says that they are valid. What it refuses,
// kaptinlin/jsonschema must refuse too; where that accepts, the value is refused with one
// violation at the root and a cause for the operator. kaptinlin/jsonschema decides about
// all other schemas, and about values that are too large for the program. It is fenced
// against its known defects (see library, builder, bundler and the lint), and asked only if
// its work, which is counted before it begins (see costOf), is bounded. A panic of it is a
// refusal.
//
// A plain schema's program is compiled when the schema is, and what the library needs when a value is first
// not accepted: then the text is read once more. Until then the program has judged alone, as it always does
// where it accepts. If the library cannot be had, the value is refused, like all that it would have been
// asked about. That it compiles every plain schema is what FuzzPlain and TestDifferential show.
//
// The violations of both are derived from the structure of its result and the node of each
// schema (see explanation), so that there is one wording. The two are compared by tests
// and by make differential, and not while a configuration loads.
//
// # The way of a definition
//
// decode → document → lint → metaschema → reference → bundle (closing) → plain → node
// (compiling) → complexity → library, the last for other than plain schemas, and the two before it for
// those, and for plain ones with references, boundaries or secrets. A value goes through plain, well_formed, cost and library;
// explain, finding, collector and message make the violations.
package schema
