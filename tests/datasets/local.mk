check_PROGRAMS += \
  tests/datasets/test-augment \
  tests/datasets/test-photometric \
  tests/datasets/test-random-sizes \
  tests/datasets/test-hostile \
  tests/datasets/test-hostile-images \
  tests/datasets/test-image \
  tests/datasets/test-loader \
  tests/datasets/test-sampler \
  tests/datasets/test-split \
  tests/datasets/test-synth \
  tests/datasets/test-transforms \
  tests/datasets/test-voc \
  tests/datasets/test-voc-xml

tests_datasets_util = tests/datasets/util.c tests/datasets/util.h tests/tree.c tests/tree.h

tests_datasets_test_hostile_SOURCES = tests/datasets/test-hostile.c $(tests_datasets_util)
tests_datasets_test_hostile_LDADD = $(TEST_LIBS)
tests_datasets_test_image_SOURCES = tests/datasets/test-image.c tests/datasets/resize-golden.h $(tests_datasets_util)
tests_datasets_test_image_LDADD = $(TEST_LIBS)
tests_datasets_test_loader_SOURCES = tests/datasets/test-loader.c $(tests_datasets_util) $(CHROME_TRACE)
tests_datasets_test_loader_LDADD = $(TEST_LIBS)
tests_datasets_test_sampler_SOURCES = tests/datasets/test-sampler.c $(tests_datasets_util)
tests_datasets_test_sampler_LDADD = $(TEST_LIBS)
tests_datasets_test_synth_SOURCES = tests/datasets/test-synth.c $(tests_datasets_util)
tests_datasets_test_synth_LDADD = $(TEST_LIBS)
tests_datasets_test_transforms_SOURCES = tests/datasets/test-transforms.c tests/batch-image.h $(tests_datasets_util)
tests_datasets_test_transforms_LDADD = $(TEST_LIBS)
tests_datasets_test_voc_SOURCES = tests/datasets/test-voc.c $(tests_datasets_util)
tests_datasets_test_voc_LDADD = $(TEST_LIBS)

tests_datasets_test_hostile_images_SOURCES = tests/datasets/test-hostile-images.c $(tests_datasets_util)
tests_datasets_test_hostile_images_LDADD = $(TEST_LIBS)
tests_datasets_test_split_SOURCES = tests/datasets/test-split.c $(tests_datasets_util)
tests_datasets_test_split_LDADD = $(TEST_LIBS)
tests_datasets_test_voc_xml_SOURCES = tests/datasets/test-voc-xml.c $(tests_datasets_util)
tests_datasets_test_voc_xml_LDADD = $(TEST_LIBS)

# Not a test: `make tests/datasets/opencv-peer`, then compare-opencv.py.
EXTRA_PROGRAMS += tests/datasets/opencv-peer
tests_datasets_opencv_peer_SOURCES = tests/datasets/opencv-peer.c $(tests_datasets_util)
tests_datasets_opencv_peer_LDADD = $(TEST_LIBS)

tests_datasets_test_augment_SOURCES = tests/datasets/test-augment.c $(tests_datasets_util)
tests_datasets_test_augment_LDADD = $(TEST_LIBS)
tests_datasets_test_photometric_SOURCES = tests/datasets/test-photometric.c tests/datasets/photometric-golden.h
tests_datasets_test_photometric_LDADD = $(TEST_LIBS)
tests_datasets_test_random_sizes_SOURCES = tests/datasets/test-random-sizes.c $(tests_datasets_util)
tests_datasets_test_random_sizes_LDADD = $(TEST_LIBS)

EXTRA_DIST += tests/datasets/make-photometric.py
EXTRA_DIST += tests/datasets/compare-opencv.py tests/datasets/make-fixtures.py
EXTRA_DIST += \
  tests/datasets/fixtures/alpha.png \
  tests/datasets/fixtures/alpha.rgb \
  tests/datasets/fixtures/baseline.jpg \
  tests/datasets/fixtures/baseline.rgb \
  tests/datasets/fixtures/cmyk.jpg \
  tests/datasets/fixtures/cmyk.rgb \
  tests/datasets/fixtures/gamma.png \
  tests/datasets/fixtures/gamma.rgb \
  tests/datasets/fixtures/grey-1.png \
  tests/datasets/fixtures/grey-1.rgb \
  tests/datasets/fixtures/grey-16.png \
  tests/datasets/fixtures/grey-16.rgb \
  tests/datasets/fixtures/grey-2.png \
  tests/datasets/fixtures/grey-2.rgb \
  tests/datasets/fixtures/grey-4.png \
  tests/datasets/fixtures/grey-4.rgb \
  tests/datasets/fixtures/grey.jpg \
  tests/datasets/fixtures/grey.rgb \
  tests/datasets/fixtures/interlaced.png \
  tests/datasets/fixtures/interlaced.rgb \
  tests/datasets/fixtures/key.png \
  tests/datasets/fixtures/key.rgb \
  tests/datasets/fixtures/orientation-1.jpg \
  tests/datasets/fixtures/orientation-1.rgb \
  tests/datasets/fixtures/orientation-2.jpg \
  tests/datasets/fixtures/orientation-2.rgb \
  tests/datasets/fixtures/orientation-3.jpg \
  tests/datasets/fixtures/orientation-3.rgb \
  tests/datasets/fixtures/orientation-4.jpg \
  tests/datasets/fixtures/orientation-4.rgb \
  tests/datasets/fixtures/orientation-5.jpg \
  tests/datasets/fixtures/orientation-5.rgb \
  tests/datasets/fixtures/orientation-6.jpg \
  tests/datasets/fixtures/orientation-6.rgb \
  tests/datasets/fixtures/orientation-7.jpg \
  tests/datasets/fixtures/orientation-7.rgb \
  tests/datasets/fixtures/orientation-8.jpg \
  tests/datasets/fixtures/orientation-8.rgb \
  tests/datasets/fixtures/palette-2.png \
  tests/datasets/fixtures/palette-2.rgb \
  tests/datasets/fixtures/palette-short.png \
  tests/datasets/fixtures/palette-short.rgb \
  tests/datasets/fixtures/palette.png \
  tests/datasets/fixtures/palette.rgb \
  tests/datasets/fixtures/progressive.jpg \
  tests/datasets/fixtures/progressive.rgb \
  tests/datasets/fixtures/rgb-16.png \
  tests/datasets/fixtures/rgb-16.rgb \
  tests/datasets/fixtures/rgb.png \
  tests/datasets/fixtures/rgb.rgb \
  tests/datasets/fixtures/text-bomb.png \
  tests/datasets/fixtures/text-bomb.rgb
