/* Annotations in VOC's XML. */
#include "config.h"

#include "tests/fuzz/readers.h"

#include "datasets/voc-xml.h"

#include <math.h>
#include <string.h>

static int
fuzz_xml (const guint8 *data, gsize size)
{
  g_auto (RnVocAnnotation) annotation;
  g_autoptr (GError) error = NULL;
  gboolean ok;

  rn_voc_xml_init ();
  rn_voc_annotation_init (&annotation);
  ok = rn_voc_xml_parse ((const char *) data, size, &annotation, &error);
  for (guint i = 0; ok && i < annotation.objects->len; i++)
    {
      const RnVocObject *object = &g_array_index (annotation.objects, RnVocObject, i);

      g_assert_cmpuint (strnlen (object->name, RN_VOC_NAME_SIZE), >, 0);
      g_assert_cmpuint (strnlen (object->name, RN_VOC_NAME_SIZE), <, RN_VOC_NAME_SIZE);
      g_assert_true (g_utf8_validate (object->name, -1, NULL));
      for (int k = 0; k < 4; k++)
        g_assert_true (isfinite (object->box[k]));
    }
  return rn_fuzz_check (ok, error);
}

static void
add_seeds (GPtrArray *seeds)
{
  rn_fuzz_add_text (
      seeds,
      "<?xml version=\"1.0\"?><!DOCTYPE annotation [<!ENTITY e \"eeee\"><!ENTITY f \"&e;&e;&e;\">]>\n"
      "<annotation><folder>&f;</folder><size><width>353</width><height>500</height><depth>3</depth></size>\n"
      "<object><name>dog&amp;</name><difficult>0</difficult><part><name>head</name></part>"
      "<bndbox><xmin>48</xmin><ymin>240.5</ymin><xmax>195</xmax><ymax>371</ymax></bndbox></object>\n"
      "<object><name><![CDATA[cat]]></name><difficult>1</difficult>"
      "<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3</xmax><ymax>4</ymax></bndbox></object></annotation>\n");
  rn_fuzz_add_text (
      seeds, "<?xml version='1.0' encoding='ISO-8859-1'?>\n<annotation verified=\"no\">\n"
             "<folder>x</folder><filename>a.jpg</filename><path>C:\\a.jpg</path><!-- made by hand -->\n"
             "<source><database>The VOC2007 Database</database><annotation>PASCAL VOC2007</annotation>"
             "<image>flickr</image><flickrid>341012865</flickrid></source>\n"
             "<owner><flickrid>Fried Camels</flickrid><name>Jinky the Fruit Bat</name></owner>\n"
             "<segmented>0</segmented><object><name>caf\xe9</name><pose>Unspecified</pose>"
             "<truncated>0</truncated>"
             "<bndbox><ymin>1e1</ymin><xmin>2</xmin><ymax> 30 </ymax><xmax>4.0</xmax></bndbox></object>"
             "</annotation>");
}

static const RnFuzzToken tokens[] = {
  RN_FUZZ_TOKEN ("<object>"),
  RN_FUZZ_TOKEN ("</object>"),
  RN_FUZZ_TOKEN ("<object/>"),
  RN_FUZZ_TOKEN ("<name>"),
  RN_FUZZ_TOKEN ("</name>"),
  RN_FUZZ_TOKEN ("<bndbox>"),
  RN_FUZZ_TOKEN ("</bndbox>"),
  RN_FUZZ_TOKEN ("<xmin>"),
  RN_FUZZ_TOKEN ("</xmin>"),
  RN_FUZZ_TOKEN ("<difficult>"),
  RN_FUZZ_TOKEN ("<size>"),
  RN_FUZZ_TOKEN ("<part>"),
  RN_FUZZ_TOKEN ("&amp;"),
  RN_FUZZ_TOKEN ("&e;"),
  RN_FUZZ_TOKEN ("&#10;"),
  RN_FUZZ_TOKEN ("&#x1b;"),
  RN_FUZZ_TOKEN ("&#x85;"),
  RN_FUZZ_TOKEN ("<![CDATA["),
  RN_FUZZ_TOKEN ("]]>"),
  RN_FUZZ_TOKEN ("<!--"),
  RN_FUZZ_TOKEN ("-->"),
  RN_FUZZ_TOKEN ("<?x y?>"),
  RN_FUZZ_TOKEN ("<!ENTITY g SYSTEM \"/etc/passwd\">"),
  RN_FUZZ_TOKEN ("<!ENTITY % p \"<!ENTITY e 'x'>\">"),
  RN_FUZZ_TOKEN ("%p;"),
  RN_FUZZ_TOKEN ("encoding='UTF-16'"),
  RN_FUZZ_TOKEN ("encoding='GBK'"),
  RN_FUZZ_TOKEN ("xmlns:a='b'"),
  RN_FUZZ_TOKEN ("a:"),
  RN_FUZZ_TOKEN ("1e999"),
  RN_FUZZ_TOKEN ("nan"),
  RN_FUZZ_TOKEN ("inf"),
  RN_FUZZ_TOKEN ("-1"),
  RN_FUZZ_TOKEN ("\xff\xfe"),
  RN_FUZZ_TOKEN ("\xef\xbb\xbf"),
  { NULL, 0 },
};

const RnFuzzReader rn_fuzz_reader_xml = { "xml", fuzz_xml, add_seeds, tokens };
