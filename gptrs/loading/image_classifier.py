"""`ImageClassifier`: the handle of a loaded image classifier, images → labels.

Images of a batch run one by one on one thread each, so that activations stay in caches and threads
do not wait for each other at every layer; the first image loads the weights with all threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast, overload

import numpy as np
from numpy.typing import NDArray

from gptrs.errors import ArgumentError, located_threads, user_location
from gptrs.formats.labels import read_labels
from gptrs.formats.model_files import ModelFiles
from gptrs.formats.preprocessor import read_preprocessor
from gptrs.images.decode import holds_floats
from gptrs.images.preprocess import Preprocessor
from gptrs.ir.tensor import Tensor, as_array
from gptrs.jit.modes import model_scope
from gptrs.jit.overrides import Policies
from gptrs.kernels.driver.threads import spread, thread_count
from gptrs.loading.loaded_model import LoadedModel
from gptrs.loading.weights import Weights
from gptrs.nn.layout import is_channels_first
from gptrs.text.logprobs import likeliest

if TYPE_CHECKING:
    from gptrs.images.decode import ImageSource


class Label(NamedTuple):
    """A class and its probability for one image."""

    index: int  # pyright: ignore[reportIncompatibleMethodOverride]
    name: str
    probability: float


class ImageClassifier(LoadedModel):
    """A loaded model that classifies images.

    ``module`` is the model itself (call it with images [N, H, W, C]), ``config`` its configuration,
    ``labels`` the names of its classes. `forward` and `classify` follow the checkpoint's
    ``runtime.functional_overrides``.
    """

    def __init__(
        self,
        files: ModelFiles,
        kind: str,
        module: Any,
        weights: Weights,
        overrides: Policies = (),
    ) -> None:
        super().__init__(files, kind, module, weights)
        named = read_labels(files.config, files.config_file)
        count = self.config.num_labels
        self.labels = named or tuple(f"LABEL_{index}" for index in range(count))
        self._overrides = overrides
        self._preprocessor: Preprocessor | None = None
        self._has_run = False

    @property
    def preprocessor(self) -> Preprocessor:
        """The preprocessor of the model, read on first use. Raises `LoadError`."""
        if self._preprocessor is None:
            self._preprocessor = read_preprocessor(
                self.directory, size=self.module.image_size, channels=self.config.num_channels
            )
        return self._preprocessor

    def forward(self, images: object) -> Tensor:
        """Logits [N, classes] for preprocessed ``images`` [N, H, W, C] or [N, C, H, W], floats;
        [classes] for one image without the axis N.

        Raises `ArgumentError` or `ShapeError` for other inputs.
        """
        array = self._as_images(images)
        if array.ndim == 3:
            return self._logits(array[None])[0]
        if len(array) == 1:
            return self._logits(array)
        # One by one, with the same bits as in a batch: activations stay in caches, and threads do
        # not wait for each other at every layer.
        logits: dict[int, NDArray[Any]] = {}

        def run(number: int) -> None:
            logits[number] = self._logits(array[number : number + 1]).numpy()

        left = list(range(len(array)))
        if not self._has_run:
            run(left.pop())  # loads weights with all threads
        with located_threads(user_location()):
            spread(run, left, min(thread_count(), len(left)))
        return Tensor(np.concatenate([logits[number] for number in range(len(array))]))

    def _logits(self, images: NDArray[Any]) -> Tensor:
        with model_scope(self._overrides, self.backend):
            logits: Tensor = self.module(images)
        self._has_run = True
        return logits

    @overload
    def classify(self, images: ImageSource, top: int = 5) -> list[Label]: ...
    @overload
    def classify(self, images: Sequence[ImageSource], top: int = 5) -> list[list[Label]]: ...

    def classify(
        self, images: ImageSource | Sequence[ImageSource], top: int = 5
    ) -> list[Label] | list[list[Label]]:
        """The ``top`` likeliest labels of an image, likeliest first; a list of these for several.

        An image is a path, a Pillow image or an array [H, W, C], of uint8 from 0 to 255 or of
        floats from 0 to 1. Raises `ArgumentError` or `LoadError` for one that cannot be used.
        """
        if isinstance(top, bool) or not isinstance(top, int | np.integer) or top < 1:
            raise ArgumentError(f"top is {top!r}, expected an integer from 1 up")
        if isinstance(images, list | tuple) or (
            isinstance(images, np.ndarray) and images.ndim == 4
        ):
            return self._classify(cast("Sequence[ImageSource]", images), top)
        return self._classify([cast("ImageSource", images)], top)[0]

    def _classify(self, sources: Sequence[ImageSource], top: int) -> list[list[Label]]:
        if len(sources) == 0:
            return []
        return [
            [Label(index, self.labels[index], likely) for index, likely in likeliest(row, top)]
            for row in self.forward(self.preprocessor(sources)).numpy()
        ]

    def _as_images(self, images: object) -> NDArray[np.float32]:
        array = as_array(images)
        channels = self.config.num_channels
        expected = f"floats [N, H, W, {channels}] or [N, {channels}, H, W], N optional"
        if array is None:
            raise ArgumentError(
                f"images are a {type(images).__name__}, expected an array: {expected}",
                fix="pass paths and Pillow images to classify",
            )
        floats = holds_floats(array)
        if not floats or array.ndim not in (3, 4) or array.size == 0:
            raise ArgumentError(
                f"images have shape {array.shape} and dtype {array.dtype}, expected {expected},"
                " not empty",
                fix="" if floats else "pass pixels to classify, or model.preprocessor(images) here",
            )
        is_channels_first(array.shape[-3:], channels)
        if array.dtype == np.float32:
            return array
        with np.errstate(over="ignore"):  # infinite then, as after any other operation
            return array.astype(np.float32)

    @property
    def causal_lm(self) -> None:
        """None: it continues no text."""
        return None

    @property
    def image_classifier(self) -> ImageClassifier:
        """This handle: it classifies images."""
        return self
