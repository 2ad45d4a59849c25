# Turns templates into C, for an array: { "NAME", "TEXT" }, for each NAME.tmpl.
FNR == 1 {
  if (NR > 1) print "},"
  name = FILENAME
  sub (/^.*\//, "", name)
  sub (/[.]tmpl$/, "", name)
  print "{ \"" name "\","
}
{
  gsub (/\\/, "&&")
  gsub (/"/, "\\\\&")
  print "\"" $0 "\\n\""
}
END { print "}," }
